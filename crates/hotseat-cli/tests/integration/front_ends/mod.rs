//! Features of case files, TypeScript and Rust: each feature is written in each front end and either has the
//! same effect or is rejected with a message that names it. The table of `docs/front-ends.md` is generated
//! from this list.
mod features;
mod fixture;

use std::fmt::Write as _;
use std::path::Path;

use features::{FEATURES, Feature};
use fixture::{FeatureFixture, FrontEndSupport, FrontEndTest};

/// Front ends as named in the table.
const FRONT_ENDS: [&str; 3] = ["YAML, JSON", "TypeScript", "Rust"];

impl Feature {
    fn by_front_end(&self) -> [(&'static str, &FrontEndSupport); 3] {
        let [data, typescript, rust] = FRONT_ENDS;
        [(data, &self.data), (typescript, &self.typescript), (rust, &self.rust)]
    }
}

#[test]
fn supported_features_work_and_others_are_rejected() {
    let mut wrong = String::new();
    for feature in FEATURES {
        for (front_end, front) in feature.by_front_end() {
            let (written, rejection) = match front {
                FrontEndSupport::Supported(written) => (written, None),
                FrontEndSupport::Unsupported(written, words) => (written, Some(*words)),
            };
            let house = FeatureFixture::create();
            let seen = house.run(written);
            let found = match rejection {
                None if seen.code == feature.code && (feature.effect)(&seen) => continue,
                None => format!("does not work, exit code {}", seen.code),
                Some(words) if seen.code != 0 && seen.words.contains(words) => continue,
                Some(words) => format!("is not rejected with {words:?}, exit code {}", seen.code),
            };
            let _ = writeln!(wrong, "`{}` in {front_end} {found}\n{seen:#?}\n", feature.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn documented_feature_table_is_current() {
    let mut table = format!("| | {} |\n|---|---|---|---|\n", FRONT_ENDS.join(" | "));
    for feature in FEATURES {
        let cells = feature.by_front_end().map(|(front_end, front)| match front {
            FrontEndSupport::Supported(_) => feature.spelling(front_end).to_string(),
            FrontEndSupport::Unsupported(..) => "–".to_string(),
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
        assert!(
            page == expected,
            "`UPDATE_DOCS=1 cargo test --test integration front_ends` writes the table:\n{table}"
        );
    }
}

/// The test for a missing feature contains nothing else.
#[test]
fn features_are_unique_and_supported_somewhere() {
    for (number, feature) in FEATURES.iter().enumerate() {
        assert!(FEATURES[..number].iter().all(|other| other.name != feature.name), "{}", feature.name);
        let has = |front: &FrontEndSupport| matches!(front, FrontEndSupport::Supported(FrontEndTest { .. }));
        assert!(feature.by_front_end().iter().any(|(_, front)| has(front)), "{}", feature.name);
    }
}
