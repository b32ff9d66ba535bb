//! Compression of stored texts.
//!
//! Most texts of a case are a few hundred bytes, and the same names repeat more often between cases than
//! within one case. So each text is compressed with a dictionary: a common one, and a sample of its run.

use std::io;
use std::iter;
use std::ops::Range;

use lz4_flex::block::{compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size};

/// Format of an uncompressed text.
const PLAIN_FORMAT: u8 = 0;
/// Formats of earlier versions: like the next two, but with four bytes for each length.
const WIDE_COMPRESSED_FORMAT: u8 = 1;
const WIDE_SAMPLED_FORMAT: u8 = 2;
/// Format of a text compressed with [`DICTIONARY`], preceded by its length: seven bits in each byte, the lowest first,
/// and the eighth if more follow.
const COMPRESSED_FORMAT: u8 = 3;
/// Format of a text compressed with [`DICTIONARY`] and the sample of its run, preceded by its length.
const SAMPLED_FORMAT: u8 = 4;
/// Format of a text compressed with the sample of its run alone, preceded by its length. Earlier versions wrote it.
const SAMPLE_ONLY_FORMAT: u8 = 5;
/// Formats of a text compressed with the part of the sample that has its [`TextKind`], in their order, preceded by its length.
const PART_FORMATS: [u8; 3] = [6, 7, 8];
/// Format of a text of more than [`MAX_PIECE_BYTES`]: each of its pieces in one of the formats above, preceded by its
/// compressed size.
const PIECES_FORMAT: u8 = 9;
/// Maximum size of a text that is compressed as a whole. Compression reserves memory for a text that does not become
/// smaller.
const MAX_PIECE_BYTES: usize = 8 * 1024 * 1024;
/// Size of a sample whose parts need no help of [`DICTIONARY`]: they contain the names that texts of cases repeat, and a
/// smaller dictionary is prepared in less time. Smaller samples come from attempts that ended early.
const FULL_SAMPLE_BYTES: usize = 2 * 1024;
/// Maximum size of the format and the length before a compressed text.
const MAX_HEAD_BYTES: usize = 6;
/// Separator of the texts of a sample. No JSON text contains it.
const SAMPLE_SEPARATOR: u8 = 0;
/// Maximum size of each text of a sample. A larger dictionary takes longer to prepare.
const MAX_SAMPLE_TEXT_BYTES: usize = 6 * 1024;

/// Compression dictionary. It must never change, because compressed texts could not be read any more; a
/// better dictionary needs a new format number. Frequent parts are at the end, where references are cheapest.
const DICTIONARY: &[u8] = include_bytes!("common-1.txt");

/// Kind of a text of a case.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextKind {
    /// The case.
    Case,
    /// An attempt without its events, or the outcome of a case.
    Attempt,
    /// The events of an attempt.
    Events,
}

/// Dictionary of one run: the common one, followed by a sample of its texts. Other cases repeat most of them.
#[derive(Debug)]
pub(super) struct RunDictionary {
    bytes: Vec<u8>,
    /// The texts of a full sample, in the order of [`TextKind`]. Samples of earlier versions are not divided.
    parts: Option<[Range<usize>; 3]>,
}

impl RunDictionary {
    /// Creates a dictionary from a [sample()].
    pub(super) fn new(sample: &[u8]) -> RunDictionary {
        let mut start = DICTIONARY.len();
        let parts: Vec<Range<usize>> = sample
            .split(|byte| *byte == SAMPLE_SEPARATOR)
            .map(|text| {
                let part = start..start + text.len();
                start = part.end + 1;
                part
            })
            .collect();
        let is_full = sample.len() >= FULL_SAMPLE_BYTES;
        let parts = parts.try_into().ok().filter(|_| is_full);
        RunDictionary { bytes: [DICTIONARY, sample].concat(), parts }
    }

    /// Compresses a text if that makes it smaller.
    pub(super) fn compress(&self, kind: TextKind, text: &[u8]) -> Vec<u8> {
        match &self.parts {
            Some(parts) => {
                compress_with(text, PART_FORMATS[kind as usize], &self.bytes[parts[kind as usize].clone()])
            }
            None => compress_with(text, SAMPLED_FORMAT, &self.bytes),
        }
    }

    /// Returns the bytes with which a text of this format was compressed.
    fn bytes_of(&self, format: u8) -> Option<&[u8]> {
        match format {
            SAMPLED_FORMAT | WIDE_SAMPLED_FORMAT => Some(&self.bytes),
            SAMPLE_ONLY_FORMAT => Some(&self.bytes[DICTIONARY.len()..]),
            part => {
                let kind = PART_FORMATS.iter().position(|format| *format == part)?;
                Some(&self.bytes[self.parts.as_ref()?[kind].clone()])
            }
        }
    }
}

/// Joins one text of each [`TextKind`] to the sample of a run.
pub(super) fn sample(texts: [&[u8]; 3]) -> Vec<u8> {
    texts.map(|text| &text[..text.len().min(MAX_SAMPLE_TEXT_BYTES)]).join(&SAMPLE_SEPARATOR)
}

/// Compresses a text if that makes it smaller.
pub(super) fn compress(text: &[u8]) -> Vec<u8> {
    compress_with(text, COMPRESSED_FORMAT, DICTIONARY)
}

fn compress_with(text: &[u8], format: u8, dictionary: &[u8]) -> Vec<u8> {
    if text.len() <= MAX_PIECE_BYTES {
        return compress_piece(text, format, dictionary);
    }
    let mut out = vec![PIECES_FORMAT];
    for piece in text.chunks(MAX_PIECE_BYTES) {
        let packed = compress_piece(piece, format, dictionary);
        push_length(&mut out, packed.len());
        out.extend(packed);
    }
    out
}

fn compress_piece(text: &[u8], format: u8, dictionary: &[u8]) -> Vec<u8> {
    let room = get_maximum_output_size(text.len());
    let mut out = Vec::with_capacity(MAX_HEAD_BYTES + room);
    out.push(format);
    push_length(&mut out, text.len());
    let head = out.len();
    out.resize(head + room, 0);
    if let Ok(pressed) = compress_into_with_dict(text, &mut out[head..], dictionary)
        && head + pressed <= text.len()
    {
        out.truncate(head + pressed);
        return out;
    }
    out.clear();
    out.push(PLAIN_FORMAT);
    out.extend_from_slice(text);
    out
}

/// Compresses texts of which most equal the previous one, such as the outcomes of passed cases. Preparing the
/// dictionary takes longer than compressing so short a text.
#[derive(Default)]
pub(super) struct RepeatCompressor {
    text: Vec<u8>,
    compressed: Vec<u8>,
}

impl RepeatCompressor {
    /// Returns the compressed text.
    pub(super) fn compress(&mut self, text: Vec<u8>, of_run: Option<&RunDictionary>) -> &[u8] {
        if self.compressed.is_empty() || self.text != text {
            self.compressed = match of_run {
                Some(dictionary) => dictionary.compress(TextKind::Attempt, &text),
                None => compress(&text),
            };
            self.text = text;
        }
        &self.compressed
    }
}

/// Returns true if a text can be read with the dictionary of its run only.
pub(super) fn needs_sample(packed: &[u8]) -> bool {
    packed.first().is_some_and(|format| match *format {
        SAMPLED_FORMAT | SAMPLE_ONLY_FORMAT | WIDE_SAMPLED_FORMAT => true,
        PIECES_FORMAT => pieces(&packed[1..]).any(|piece| piece.is_ok_and(needs_sample)),
        format => PART_FORMATS.contains(&format),
    })
}

/// Decompresses a text. Texts of cases need the dictionary of their run, if it has one.
pub(super) fn decompress(packed: &[u8], of_run: Option<&RunDictionary>) -> io::Result<Vec<u8>> {
    let (&format, rest) = packed.split_first().ok_or_else(|| broken("it is empty"))?;
    let (length, rest) = match format {
        PLAIN_FORMAT => return Ok(rest.to_vec()),
        COMPRESSED_FORMAT | SAMPLED_FORMAT | SAMPLE_ONLY_FORMAT => read_length(rest),
        PIECES_FORMAT => {
            let texts: io::Result<Vec<_>> = pieces(rest).map(|piece| decompress(piece?, of_run)).collect();
            return Ok(texts?.concat());
        }
        part if PART_FORMATS.contains(&part) => read_length(rest),
        WIDE_COMPRESSED_FORMAT | WIDE_SAMPLED_FORMAT => {
            rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest))
        }
        other => return Err(broken(&format!("its format {other} is unknown"))),
    }
    .ok_or_else(|| broken("it is cut off"))?;
    let dictionary = match needs_sample(packed) {
        false => DICTIONARY,
        true => of_run
            .and_then(|dictionary| dictionary.bytes_of(format))
            .ok_or_else(|| broken("the sample of its run is missing"))?,
    };
    // LZ4 expands a byte to at most 255 bytes. A larger length is wrong and must not exhaust memory.
    if length > rest.len().saturating_mul(256) {
        return Err(broken("its length is wrong"));
    }
    let mut text = vec![0; length];
    match decompress_into_with_dict(rest, &mut text, dictionary) {
        Ok(written) if written == length => Ok(text),
        Ok(_) => Err(broken("it is cut off")),
        Err(error) => Err(broken(&error.to_string())),
    }
}

/// Returns the pieces of a text of [`PIECES_FORMAT`]. The last one is an error if it is damaged.
fn pieces(mut packed: &[u8]) -> impl Iterator<Item = io::Result<&[u8]>> {
    iter::from_fn(move || {
        if packed.is_empty() {
            return None;
        }
        let piece = read_length(packed).and_then(|(length, rest)| rest.split_at_checked(length));
        let (piece, rest) =
            piece.filter(|(piece, _)| piece.first() != Some(&PIECES_FORMAT)).unwrap_or_default();
        packed = rest;
        Some(if piece.is_empty() { Err(broken("it is cut off")) } else { Ok(piece) })
    })
}

/// Writes a length before a text.
fn push_length(out: &mut Vec<u8>, mut length: usize) {
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Reads the length before a text. Returns `None` if it is cut off or too long.
fn read_length(packed: &[u8]) -> Option<(usize, &[u8])> {
    let last = packed.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    let (bytes, rest) = packed.split_at(last + 1);
    let length = bytes.iter().rev().try_fold(0_usize, |length, byte| {
        length.checked_mul(0x80).map(|length| length | usize::from(byte & 0x7f))
    });
    Some((length?, rest))
}

fn broken(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompresses_compressed_text() {
        let long = "a turn in which \"turn.started\" is said again; ".repeat(2_000);
        for text in ["", "x", "\u{0}", "{\"sequence\":1,\"offsetUs\":12}", &long] {
            assert_eq!(decompress(&compress(text.as_bytes()), None).unwrap(), text.as_bytes());
        }
        assert!(compress(long.as_bytes()).len() < long.len() / 50);
    }

    #[test]
    fn large_texts_are_compressed_in_pieces() {
        let words = "a turn in which \"turn.started\" is said again; ";
        let text = words.repeat(2 * MAX_PIECE_BYTES / words.len() + 9).into_bytes();
        let dictionary = RunDictionary::new(&sample([b"{}", b"{}", &text]));
        let packed = dictionary.compress(TextKind::Events, &text);
        assert!(packed.len() < text.len() / 50, "{} bytes", packed.len());
        assert!(needs_sample(&packed) && decompress(&packed, None).is_err());
        assert!(decompress(&packed, Some(&dictionary)).unwrap() == text);
        assert!(decompress(&packed[..packed.len() - 1], Some(&dictionary)).is_err());
        let nested = [&[PIECES_FORMAT, 3][..], &[PIECES_FORMAT, 1, PLAIN_FORMAT]].concat();
        assert!(decompress(&nested, None).is_err());
    }

    #[test]
    fn texts_like_those_of_the_sample_become_small() {
        let text = |number: u32| {
            format!("{{\"order\":{number},\"tool\":\"lookup_order\",\"answer\":\"It has left our house\"}}")
        };
        let (short, full) = (text(1), (0..40).map(text).collect::<String>());
        for (of_run, is_full) in [(short, false), (full, true)] {
            for kind in [TextKind::Case, TextKind::Attempt, TextKind::Events] {
                let mut texts: [&[u8]; 3] = [b"{}"; 3];
                texts[kind as usize] = of_run.as_bytes();
                let dictionary = RunDictionary::new(&sample(texts));
                for text in ["", "x", &text(1), &text(4711), &"other words ".repeat(2_000)] {
                    let packed = dictionary.compress(kind, text.as_bytes());
                    assert_eq!(decompress(&packed, Some(&dictionary)).unwrap(), text.as_bytes());
                    assert_eq!(decompress(&packed, None).is_err(), needs_sample(&packed), "{text}");
                }
                let sampled = dictionary.compress(kind, text(4711).as_bytes());
                assert_eq!(sampled[0], if is_full { PART_FORMATS[kind as usize] } else { SAMPLED_FORMAT });
                assert!(sampled.len() < compress(text(4711).as_bytes()).len() / 2, "{} bytes", sampled.len());
            }
        }
        assert_eq!(sample([&[b'x'; 100_000], b"y", b""]).len(), MAX_SAMPLE_TEXT_BYTES + 3);
    }

    #[test]
    fn repeated_texts_are_compressed_like_others() {
        let mut repeats = RepeatCompressor::default();
        for text in ["", "", "a turn in which", "a turn in which", "x", ""] {
            assert_eq!(repeats.compress(text.as_bytes().to_vec(), None), compress(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn reads_texts_of_earlier_versions() {
        let text = "a turn in which \"turn.started\" is said again; ".repeat(9);
        let dictionary = RunDictionary::new(text.as_bytes());
        for (packed, format) in [
            (compress(text.as_bytes()), WIDE_COMPRESSED_FORMAT),
            (dictionary.compress(TextKind::Case, text.as_bytes()), WIDE_SAMPLED_FORMAT),
        ] {
            let (length, rest) = read_length(&packed[1..]).unwrap();
            let earlier = [&[format], &(length as u32).to_le_bytes()[..], rest].concat();
            assert_eq!(decompress(&earlier, Some(&dictionary)).unwrap(), text.as_bytes());
            assert_eq!(needs_sample(&earlier), format == WIDE_SAMPLED_FORMAT);
        }
        let undivided = RunDictionary::new("a text of a case ".repeat(200).as_bytes());
        let packed = compress_with(text.as_bytes(), SAMPLE_ONLY_FORMAT, &undivided.bytes[DICTIONARY.len()..]);
        assert_eq!(decompress(&packed, Some(&undivided)).unwrap(), text.as_bytes());
        let divided = [&PART_FORMATS[..1], &packed[1..]].concat();
        assert!(decompress(&divided, Some(&undivided)).is_err(), "the sample has no parts");
    }

    #[test]
    fn rejects_damaged_data_without_large_allocations() {
        let good = compress(
            "a turn in which a turn is begun, and a turn in which a turn is ended".repeat(9).as_bytes(),
        );
        assert_eq!(good[0], COMPRESSED_FORMAT);
        for cut in 0..good.len() {
            let _ = decompress(&good[..cut], None);
        }
        assert!(decompress(&[], None).is_err());
        assert!(decompress(&[9, 1, 2], None).is_err());
        assert!(decompress(&[COMPRESSED_FORMAT, 0xff, 0xff, 0xff, 0xff, 0], None).is_err());
        assert!(decompress(&good[..good.len() - 3], None).is_err());
    }
}
