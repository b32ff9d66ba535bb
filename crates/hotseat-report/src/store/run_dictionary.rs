//! The dictionary of a run in its rows: a source with a number of its own contains the sample.

use std::io;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::compression::{RunDictionary, compress, decompress};
use super::seal::SOURCE_TABLE;

/// Number of the source that contains the sample. All others have larger numbers.
pub(super) const SAMPLE_SOURCE: i64 = 0;

/// Reads the dictionary of a run, if it has one.
pub(super) fn read_dictionary(
    connection: &Connection,
    run: i64,
) -> rusqlite::Result<Option<io::Result<RunDictionary>>> {
    let select = "SELECT text FROM source WHERE run = ?1 AND number = ?2";
    let packed =
        connection.query_row(select, [run, SAMPLE_SOURCE], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(packed.map(|packed| decompress(&packed, None).map(|sample| RunDictionary::new(&sample))))
}

/// Writes the sample of a run and returns the dictionary.
pub(super) fn write_dictionary(
    transaction: &Transaction<'_>,
    run: i64,
    sample: &[u8],
) -> rusqlite::Result<RunDictionary> {
    transaction
        .execute(SOURCE_TABLE.insertion(), params![run, SAMPLE_SOURCE, "sample", compress(sample), 1, 1])?;
    Ok(RunDictionary::new(sample))
}
