//! Two runs beside each other: which cases got worse or better, whether that is more than chance, and where their
//! conversations part. What is compared is what reports say; nobody is asked.

mod cases;
mod comparison;
mod figures;
mod kept;
mod pairing;
mod parting;
mod read;
mod record;
mod words;

pub use cases::{Attempt, Call, CameTo, Case, Figures, Run, Turn};
pub use comparison::{Change, Claim, ComparedCase, ComparedCheck, Comparison, Rates, Rules, compare};
pub use figures::ComparedFigure;
pub use kept::read_kept;
pub use pairing::NotCompared;
pub use parting::{Parting, Step};
pub use read::{NotReadable, read_report};
pub use record::write_json;
pub use words::write_words;
