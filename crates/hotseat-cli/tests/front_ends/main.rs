//! What case files, TypeScript and Rust can say: each feature is written in each of them and has the same effect, or is
//! refused in words that name it. The table of `docs/front-ends.md` is made of this list.
#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;

mod features;
mod house;

use std::fmt::Write as _;
use std::path::Path;

use features::{FEATURES, Feature};
use house::{Front, House, Written};

/// The front-ends, as the table names them.
const FRONT_ENDS: [&str; 3] = ["YAML, JSON", "TypeScript", "Rust"];

impl Feature {
    fn written(&self) -> [(&'static str, &Front); 3] {
        let [data, typescript, rust] = FRONT_ENDS;
        [(data, &self.data), (typescript, &self.typescript), (rust, &self.rust)]
    }
}

#[test]
fn what_a_front_end_has_works_there_and_what_it_lacks_is_refused() {
    let mut wrong = String::new();
    for feature in FEATURES {
        for (front_end, front) in feature.written() {
            let (written, refusal) = match front {
                Front::Has(written) => (written, None),
                Front::Lacks(written, words) => (written, Some(*words)),
            };
            let house = House::open();
            let seen = house.run(written);
            let found = match refusal {
                None if seen.code == feature.code && (feature.effect)(&seen) => continue,
                None => format!("does not work, exit code {}", seen.code),
                Some(words) if seen.code != 0 && seen.words.contains(words) => continue,
                Some(words) => format!("is not refused with {words:?}, exit code {}", seen.code),
            };
            let _ = writeln!(wrong, "`{}` in {front_end} {found}\n{seen:#?}\n", feature.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_table_of_the_documentation_is_this_list() {
    let mut table = format!("| | {} |\n|---|---|---|---|\n", FRONT_ENDS.join(" | "));
    for feature in FEATURES {
        let cells = feature.written().map(|(front_end, front)| match front {
            Front::Has(_) => feature.spelt(front_end).to_string(),
            Front::Lacks(..) => "–".to_string(),
        });
        let _ = writeln!(table, "| {} | {} |", feature.name, cells.join(" | "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/front-ends.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- features: begin -->\n", "<!-- features: end -->");
    let (before, rest) = page.split_once(begin).expect("the page has a table of features");
    let (_, after) = rest.split_once(end).expect("the table has an end");
    let expected = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(page == expected, "`UPDATE_DOCS=1 cargo test --test front_ends` writes the table:\n{table}");
    }
}

/// What is written for a feature that a front-end lacks says only that.
#[test]
fn no_feature_is_listed_twice_and_each_is_somewhere() {
    for (number, feature) in FEATURES.iter().enumerate() {
        assert!(FEATURES[..number].iter().all(|other| other.name != feature.name), "{}", feature.name);
        let has = |front: &Front| matches!(front, Front::Has(Written { .. }));
        assert!(feature.written().iter().any(|(_, front)| has(front)), "{}", feature.name);
    }
}
