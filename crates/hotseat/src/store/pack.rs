//! How texts are kept: pressed together where that makes them smaller.
//!
//! Most of what is kept of a case is a few hundred bytes in which the same names come again and again, from case to case
//! more than within one. So each is compressed against a text that all have in common.

use std::io;

use lz4_flex::block::{compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size};

/// As it is.
const PLAIN: u8 = 0;
/// Compressed against [`COMMON`]; its length stands before it.
const PRESSED: u8 = 1;

/// What texts have in common. It is never changed, for what was compressed against it could not be read any more; a
/// better one gets a number of its own. What is most frequent stands last, where it is found most cheaply.
const COMMON: &[u8] = include_bytes!("common-1.txt");

/// Presses a text.
pub(super) fn pack(text: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 5 + get_maximum_output_size(text.len())];
    if let (Ok(length), Ok(pressed)) =
        (u32::try_from(text.len()), compress_into_with_dict(text, &mut out[5..], COMMON))
        && pressed + 4 < text.len()
    {
        out[0] = PRESSED;
        out[1..5].copy_from_slice(&length.to_le_bytes());
        out.truncate(5 + pressed);
        return out;
    }
    out.clear();
    out.push(PLAIN);
    out.extend_from_slice(text);
    out
}

/// The text that was pressed.
pub(super) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let broken = |words: &str| io::Error::new(io::ErrorKind::InvalidData, words.to_string());
    match packed.split_first() {
        Some((&PLAIN, text)) => Ok(text.to_vec()),
        Some((&PRESSED, rest)) => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(|| broken("it is cut off"))?;
            let length = u32::from_le_bytes(*length) as usize;
            // Of so many bytes no more can come than this; a length that says otherwise is no reason to run out of
            // memory.
            if length > rest.len().saturating_mul(256) {
                return Err(broken("its length is wrong"));
            }
            let mut text = vec![0; length];
            match decompress_into_with_dict(rest, &mut text, COMMON) {
                Ok(written) if written == length => Ok(text),
                Ok(_) => Err(broken("it is cut off")),
                Err(error) => Err(broken(&error.to_string())),
            }
        }
        Some((kind, _)) => Err(broken(&format!("kind {kind} of it is not known"))),
        None => Err(broken("it is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        let long = "a turn in which \"turn.started\" is said again; ".repeat(2_000);
        for text in ["", "x", "\u{0}", "{\"sequence\":1,\"offsetUs\":12}", &long] {
            assert_eq!(unpack(&pack(text.as_bytes())).unwrap(), text.as_bytes());
        }
        assert!(pack(long.as_bytes()).len() < long.len() / 50);
    }

    #[test]
    fn what_is_spoilt_is_refused_and_takes_no_memory() {
        let good =
            pack("a turn in which a turn is begun, and a turn in which a turn is ended".repeat(9).as_bytes());
        assert_eq!(good[0], PRESSED);
        for cut in 0..good.len() {
            let _ = unpack(&good[..cut]);
        }
        assert!(unpack(&[]).is_err());
        assert!(unpack(&[9, 1, 2]).is_err());
        assert!(unpack(&[PRESSED, 0xff, 0xff, 0xff, 0xff, 0]).is_err());
        assert!(unpack(&good[..good.len() - 3]).is_err());
    }
}
