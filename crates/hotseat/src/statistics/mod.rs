//! What can be said of an agent by a number of attempts, and how likely it is to be wrong. Nothing here knows of runs
//! and cases: numbers come in, numbers go out.

mod durations;
mod exact;
mod gamma;
mod normal;
mod ranks;
mod rates;
mod sequential;
mod together;

pub use durations::Spread;
pub use exact::{Compared, Sample, compared};
pub use ranks::{Shift, shift};
pub use rates::{Interval, all_of, wilson};
pub use sequential::{Finding, Sequential};
pub use together::{Test, can_tell, decided};

#[cfg(test)]
mod dice;
#[cfg(test)]
pub(crate) use dice::Dice;
