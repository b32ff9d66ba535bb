//! Size of a value as JSON, measured without writing it.

use serde::Serialize;
use serde::de::value::Error;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Bytes counted for a number, `true`, `false` and `null`.
const NUMBER_BYTES: u64 = 8;
/// Bytes of an empty list or object, or of the quotes of a text.
const PAIR_BYTES: u64 = 2;

/// Size of a JSON value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonSize {
    /// Bytes of its JSON, without the escapes within texts, and with a fixed length of numbers.
    pub bytes: u64,
    /// Number of values in it, with itself.
    pub values: u64,
    /// Nesting depth of lists and objects.
    pub depth: usize,
}

impl JsonSize {
    /// Measures a value.
    pub fn measure(value: &impl Serialize) -> JsonSize {
        let mut measured = JsonMeasurement::default();
        // Measuring itself never fails. A value that refuses to be serialised has the size of what it gave.
        let _ = value.serialize(&mut measured);
        measured.size
    }
}

/// A value that is being measured.
#[derive(Default)]
struct JsonMeasurement {
    size: JsonSize,
    open: usize,
}

impl JsonMeasurement {
    fn scalar(&mut self, bytes: u64) -> Result<(), Error> {
        self.size.values += 1;
        self.size.bytes += bytes;
        Ok(())
    }

    fn begin(&mut self) -> Result<&mut Self, Error> {
        self.open += 1;
        self.size.depth = self.size.depth.max(self.open);
        self.scalar(PAIR_BYTES)?;
        Ok(self)
    }

    /// Begins a variant with several members: an object in which its name leads to them.
    fn begin_variant(&mut self, variant: &str) -> Result<&mut Self, Error> {
        self.size.bytes += variant.len() as u64 + PAIR_BYTES + 2;
        self.begin()?.begin()
    }

    /// Ends this many lists or objects.
    fn close(&mut self, levels: usize) -> Result<(), Error> {
        self.open -= levels;
        Ok(())
    }

    /// Counts an element of a list and the comma after it.
    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.size.bytes += 1;
        value.serialize(&mut *self)
    }

    /// Counts a member, with its quotes, colon and comma.
    fn member(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.size.bytes += key.len() as u64 + PAIR_BYTES + 1;
        self.element(value)
    }
}

/// Implements methods for scalars, each with the bytes of its JSON.
macro_rules! scalars {
    ($($method:ident($($value:ident: $type:ty)?) => $bytes:expr;)+) => {
        $(fn $method(self, $($value: $type)?) -> Result<(), Error> {
            self.scalar($bytes)
        })+
    };
}

/// Implements methods that begin a list or an object.
macro_rules! beginnings {
    ($($method:ident($($type:ty),+);)+) => {
        $(fn $method(self, $(_: $type),+) -> Result<Self, Error> {
            self.begin()
        })+
    };
}

/// Implements methods that begin a variant with several members.
macro_rules! variants {
    ($($method:ident;)+) => {
        $(fn $method(
            self,
            _: &'static str,
            _: u32,
            variant: &'static str,
            _: usize,
        ) -> Result<Self, Error> {
            self.begin_variant(variant)
        })+
    };
}

impl Serializer for &mut JsonMeasurement {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    scalars! {
        serialize_bool(_value: bool) => NUMBER_BYTES;
        serialize_i8(_value: i8) => NUMBER_BYTES;
        serialize_i16(_value: i16) => NUMBER_BYTES;
        serialize_i32(_value: i32) => NUMBER_BYTES;
        serialize_i64(_value: i64) => NUMBER_BYTES;
        serialize_u8(_value: u8) => NUMBER_BYTES;
        serialize_u16(_value: u16) => NUMBER_BYTES;
        serialize_u32(_value: u32) => NUMBER_BYTES;
        serialize_u64(_value: u64) => NUMBER_BYTES;
        serialize_f32(_value: f32) => NUMBER_BYTES;
        serialize_f64(_value: f64) => NUMBER_BYTES;
        serialize_char(value: char) => value.len_utf8() as u64 + PAIR_BYTES;
        serialize_str(value: &str) => value.len() as u64 + PAIR_BYTES;
        serialize_bytes(value: &[u8]) => value.len() as u64 * 4;
        serialize_unit_struct(_name: &'static str) => NUMBER_BYTES;
        serialize_none() => NUMBER_BYTES;
        serialize_unit() => NUMBER_BYTES;
    }

    beginnings! {
        serialize_seq(Option<usize>);
        serialize_tuple(usize);
        serialize_tuple_struct(&'static str, usize);
        serialize_map(Option<usize>);
        serialize_struct(&'static str, usize);
    }

    variants! {
        serialize_tuple_variant;
        serialize_struct_variant;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.begin()?.member(variant, value)?;
        self.close(1)
    }
}

/// Implements the parts of a list or an object, each with what it does for one element and the levels that it ends.
macro_rules! parts {
    ($($part:ident::$method:ident($($key:ident: $type:ty)?) => $count:ident, $levels:literal;)+) => {
        $(impl $part for &mut JsonMeasurement {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, $($key: $type,)? value: &T) -> Result<(), Error> {
                self.$count($($key,)? value)
            }

            fn end(self) -> Result<(), Error> {
                self.close($levels)
            }
        })+
    };
}

parts! {
    SerializeSeq::serialize_element() => element, 1;
    SerializeTuple::serialize_element() => element, 1;
    SerializeTupleStruct::serialize_field() => element, 1;
    SerializeTupleVariant::serialize_field() => element, 2;
    SerializeStruct::serialize_field(key: &'static str) => member, 1;
    SerializeStructVariant::serialize_field(key: &'static str) => member, 2;
}

impl SerializeMap for &mut JsonMeasurement {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        // A key is no value of its own; its colon takes a byte.
        self.size.values -= 1;
        self.element(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close(1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn measures_depth_and_size() {
        for (text, depth, values) in [
            (r#"{"a":"[[[[[","b":["x",{}]}"#, 3, 5),
            (r#""[""#, 0, 1),
            ("[[],[]]", 2, 3),
            ("1234567.0", 0, 1),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let size = JsonSize::measure(&value);
            assert_eq!((size.depth, size.values), (depth, values), "{text}");
            // Commas are counted for every element, and numbers with one figure.
            assert!(size.bytes.abs_diff(text.len() as u64) <= values, "{text}: {size:?}");
        }
    }

    #[test]
    fn measures_variants_like_their_json() {
        #[derive(Serialize)]
        enum Shape {
            Point,
            Circle(u8),
            Line(u8, u8),
            Square { side: Vec<u8> },
        }
        let all = [Shape::Point, Shape::Circle(1), Shape::Line(1, 2), Shape::Square { side: vec![1] }];
        let as_json = JsonSize::measure(&serde_json::to_value(&all).unwrap());
        assert_eq!(JsonSize::measure(&all), as_json);
        assert_eq!(as_json.depth, 4);
    }

    #[test]
    fn measures_what_an_event_contains() {
        let of = |words: &str| JsonSize::measure(&json!({"words": [words]}));
        assert_eq!(of(&"x".repeat(1000)).bytes - of("").bytes, 1000);
        // Escapes take no memory once the text is read.
        assert_eq!(of("\n\u{1}").bytes - of("").bytes, 2);
        let deep = (0..100).fold(json!(null), |inner, _| json!([inner]));
        assert_eq!(JsonSize::measure(&deep).depth, 100);
    }
}
