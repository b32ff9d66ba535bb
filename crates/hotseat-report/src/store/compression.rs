//! Compression of stored texts.
//!
//! Most texts of a case are a few hundred bytes, and the same names repeat more often between cases than
//! within one case. So each text is compressed with a dictionary: a common one, and a sample of its run.

use std::io;

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
/// Format of a text compressed with the sample of its run alone, preceded by its length.
const SAMPLE_ONLY_FORMAT: u8 = 5;
/// Size of a sample that needs no help of [`DICTIONARY`]: it contains the names that texts of cases repeat, and a dictionary
/// of half the size is prepared in half the time. Smaller samples come from attempts that ended early.
const FULL_SAMPLE_BYTES: usize = 2 * 1024;
/// Maximum size of each text of a sample. A larger dictionary takes longer to prepare.
const MAX_SAMPLE_TEXT_BYTES: usize = 6 * 1024;

/// Compression dictionary. It must never change, because compressed texts could not be read any more; a
/// better dictionary needs a new format number. Frequent parts are at the end, where references are cheapest.
const DICTIONARY: &[u8] = include_bytes!("common-1.txt");

/// Dictionary of one run: the common one, followed by a sample of its texts. Other cases repeat most of them.
#[derive(Debug)]
pub(super) struct RunDictionary(Vec<u8>);

impl RunDictionary {
    /// Creates a dictionary from a [sample()].
    pub(super) fn new(sample: &[u8]) -> RunDictionary {
        RunDictionary([DICTIONARY, sample].concat())
    }

    /// Compresses a text if that makes it smaller.
    pub(super) fn compress(&self, text: &[u8]) -> Vec<u8> {
        match self.sample() {
            sample if sample.len() >= FULL_SAMPLE_BYTES => compress_with(text, SAMPLE_ONLY_FORMAT, sample),
            _ => compress_with(text, SAMPLED_FORMAT, &self.0),
        }
    }

    fn sample(&self) -> &[u8] {
        &self.0[DICTIONARY.len()..]
    }
}

/// Joins texts to the sample of a run.
pub(super) fn sample(texts: &[&[u8]]) -> Vec<u8> {
    texts.iter().flat_map(|text| &text[..text.len().min(MAX_SAMPLE_TEXT_BYTES)]).copied().collect()
}

/// Compresses a text if that makes it smaller.
pub(super) fn compress(text: &[u8]) -> Vec<u8> {
    compress_with(text, COMPRESSED_FORMAT, DICTIONARY)
}

fn compress_with(text: &[u8], format: u8, dictionary: &[u8]) -> Vec<u8> {
    let mut out = vec![format];
    let mut rest = text.len();
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    let head = out.len();
    out.resize(head + get_maximum_output_size(text.len()), 0);
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
            self.compressed = of_run.map_or_else(|| compress(&text), |dictionary| dictionary.compress(&text));
            self.text = text;
        }
        &self.compressed
    }
}

/// Returns true if a text can be read with the dictionary of its run only.
pub(super) fn needs_sample(packed: &[u8]) -> bool {
    matches!(packed.first(), Some(&(SAMPLED_FORMAT | SAMPLE_ONLY_FORMAT | WIDE_SAMPLED_FORMAT)))
}

/// Decompresses a text. Texts of cases need the dictionary of their run, if it has one.
pub(super) fn decompress(packed: &[u8], of_run: Option<&RunDictionary>) -> io::Result<Vec<u8>> {
    let (&format, rest) = packed.split_first().ok_or_else(|| broken("it is empty"))?;
    let (length, rest) = match format {
        PLAIN_FORMAT => return Ok(rest.to_vec()),
        COMPRESSED_FORMAT | SAMPLED_FORMAT | SAMPLE_ONLY_FORMAT => read_length(rest),
        WIDE_COMPRESSED_FORMAT | WIDE_SAMPLED_FORMAT => {
            rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest))
        }
        other => return Err(broken(&format!("its format {other} is unknown"))),
    }
    .ok_or_else(|| broken("it is cut off"))?;
    let dictionary = match (needs_sample(packed), of_run) {
        (false, _) => DICTIONARY,
        (true, Some(dictionary)) if format == SAMPLE_ONLY_FORMAT => dictionary.sample(),
        (true, Some(RunDictionary(dictionary))) => dictionary,
        (true, None) => return Err(broken("the sample of its run is missing")),
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
    fn texts_like_those_of_the_sample_become_small() {
        let text = |number: u32| {
            format!("{{\"order\":{number},\"tool\":\"lookup_order\",\"answer\":\"It has left our house\"}}")
        };
        let (short, full) = (text(1), (0..40).map(text).collect::<String>());
        for (of_run, format) in [(short, SAMPLED_FORMAT), (full, SAMPLE_ONLY_FORMAT)] {
            let dictionary = RunDictionary::new(&sample(&[of_run.as_bytes()]));
            for text in ["", "x", &text(1), &text(4711), &"other words ".repeat(2_000)] {
                let packed = dictionary.compress(text.as_bytes());
                assert_eq!(decompress(&packed, Some(&dictionary)).unwrap(), text.as_bytes());
                assert_eq!(decompress(&packed, None).is_err(), needs_sample(&packed), "{text}");
            }
            let sampled = dictionary.compress(text(4711).as_bytes());
            assert_eq!(sampled[0], format);
            assert!(sampled.len() < compress(text(4711).as_bytes()).len() / 2, "{} bytes", sampled.len());
        }
        assert_eq!(sample(&[&[b'x'; 100_000], b"y"]).len(), MAX_SAMPLE_TEXT_BYTES + 1);
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
            (dictionary.compress(text.as_bytes()), WIDE_SAMPLED_FORMAT),
        ] {
            let (length, rest) = read_length(&packed[1..]).unwrap();
            let earlier = [&[format], &(length as u32).to_le_bytes()[..], rest].concat();
            assert_eq!(decompress(&earlier, Some(&dictionary)).unwrap(), text.as_bytes());
            assert_eq!(needs_sample(&earlier), format == WIDE_SAMPLED_FORMAT);
        }
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
