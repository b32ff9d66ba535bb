//! Where runs are kept, for every command that reads or writes them.

use std::path::PathBuf;

use hotseat::config::{Project, Storing};
use hotseat::store::{Limits, Store, StoreError, store_of};

use crate::args::StoreArgs;
use crate::exit::Exit;
use crate::list::project_file;
use crate::world::World;

/// A place where runs are kept.
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// What the project file says of it, as far as it was read.
    pub storing: Storing,
}

/// Where runs are kept as the arguments say. What is wrong has been said when this fails.
pub fn place(at: &StoreArgs, world: &World) -> Result<Place, Exit> {
    if let Some(path) = &at.store {
        return Ok(Place { path: world.folder.join(path), storing: Storing::default() });
    }
    let Some((file, shown)) = project_file(at.config.as_deref(), None, world) else {
        return Ok(Place { path: store_of(&world.folder), storing: Storing::default() });
    };
    let project = Project::read(&file, &shown, world.environment.clone());
    let project = project.map_err(|mistakes| world.refuse(mistakes))?;
    Ok(Place { path: store_of(&project.root), storing: project.store })
}

/// Opens the runs that are kept there. What is wrong has been said when this fails.
pub fn open(at: &StoreArgs, world: &World) -> Result<Store, Exit> {
    let place = place(at, world)?;
    Store::open(&place.path).map_err(|error| refuse(&error, world))
}

/// Says why a run cannot be read.
pub fn refuse(error: &StoreError, world: &World) -> Exit {
    world.complain_of(error.to_string());
    match error {
        StoreError::NothingKept(_) | StoreError::NoSuchRun(_) => Exit::Usage,
        StoreError::Unusable(_) => Exit::Broken,
    }
}

/// How much is kept: what the project file does not say is as usual.
pub fn limits(storing: &Storing) -> Limits {
    Limits::or_usual(storing.keep, storing.max_size)
}
