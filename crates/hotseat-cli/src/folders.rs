//! Files below a folder, within bounds.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of folders that are searched.
const MAX_FOLDERS: usize = 2_000;

/// Returns up to `most` files below a folder that fit, in no order. Skips hidden folders, `node_modules` and
/// `target`, and does not follow links to folders.
pub fn walk_files(root: &Path, max_depth: usize, most: usize, fits: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut open = vec![(root.to_path_buf(), 0)];
    let (mut found, mut searched) = (Vec::new(), 0);
    while let Some((folder, depth)) = open.pop() {
        searched += 1;
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            let name = entry.file_name();
            let is_skipped = name
                .to_str()
                .is_none_or(|name| name.starts_with('.') || matches!(name, "node_modules" | "target"));
            if kind.is_dir() {
                if !is_skipped && depth < max_depth && searched + open.len() < MAX_FOLDERS {
                    open.push((path, depth + 1));
                }
            } else if fits(&path) {
                found.push(path);
                if found.len() >= most {
                    return found;
                }
            }
        }
    }
    found
}
