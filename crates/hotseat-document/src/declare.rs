//! Declares the shape, the type and the decoder of a mapping together.

use super::place::SourceSpan;
use super::reader::NodeView;

/// A value that is decoded from a validated node.
pub trait FromDocument: Sized {
    /// Decodes the node, or returns `None` if it does not fit.
    fn from_view(view: NodeView<'_>) -> Option<Self>;
}

macro_rules! from_document {
    ($($type:ty: $view:ident => $decoded:expr;)+) => {
        $(impl FromDocument for $type {
            fn from_view($view: NodeView<'_>) -> Option<Self> {
                $decoded
            }
        })+
    };
}

from_document! {
    bool: view => view.bool();
    String: view => view.text().map(str::to_owned);
    f64: view => view.number()?.as_f64();
    u16: view => view.integer()?.try_into().ok();
    u32: view => view.integer()?.try_into().ok();
    u64: view => view.integer()?.try_into().ok();
    usize: view => view.integer()?.try_into().ok();
    serde_json::Value: view => Some(view.json());
    SourceSpan: view => Some(view.place());
}

impl<T: FromDocument> FromDocument for Option<T> {
    fn from_view(view: NodeView<'_>) -> Option<Self> {
        T::from_view(view).map(Some)
    }
}

impl<T: FromDocument> FromDocument for Vec<T> {
    fn from_view(view: NodeView<'_>) -> Option<Self> {
        Some(view.list()?.filter_map(T::from_view).collect())
    }
}

/// Declares a mapping once: its [`Shape`](super::Shape), a struct with a member for each key, and the decoder of
/// the struct. Comments become documentation of both.
///
/// A missing optional key has the default of its member's type, or the declared `default`; `shown` is a default for
/// documentation only. `from` decodes a member in place of [`FromDocument`], `else` a value that is no mapping, and
/// `place` declares a member with the location.
///
/// ```
/// use hotseat_document::{Field, FromDocument, Kind, NodeView, SourceText, document_shape, yaml};
///
/// document_shape! {
///     /// A reservation.
///     struct Reservation as RESERVATION "Reservation" {
///         /// Name of the guest.
///         required guest: String = Kind::NonEmptyText,
///         /// Number of people.
///         optional people: u32 = Kind::Integer { min: 1, max: 20 }, default 2,
///     }
/// }
///
/// let source = SourceText::new("reservation.yaml", "guest: Ada", 1);
/// let node = yaml::parse(&source)?;
/// let reservation = Reservation::from_view(NodeView::new(&node, &source)).unwrap();
/// assert_eq!((reservation.guest.as_str(), reservation.people), ("Ada", 2));
/// assert_eq!(RESERVATION.fields[1].doc, "Number of people.");
/// # Ok::<(), hotseat_document::Diagnostics>(())
/// ```
///
/// A shape with a decoder of its own is declared as a `static`. Its keys are those of
/// [`document_fields!`](crate::document_fields); a key of several shapes is a `const`.
///
/// ```
/// use hotseat_document::{Kind, document_shape};
///
/// document_shape! {
///     /// Name of the guest.
///     const GUEST: required "guest" = Kind::NonEmptyText,
/// }
/// document_shape! {
///     /// A cancellation.
///     static CANCELLATION "Cancellation" {
///         ..GUEST,
///         /// True if the guest pays nothing.
///         optional "free" = Kind::Bool, aliases &["free_of_charge"], shown "false",
///     }
/// }
/// assert_eq!(CANCELLATION.fields[0].doc, "Name of the guest.");
/// ```
#[macro_export]
macro_rules! document_shape {
    ($(
        $(#[doc = $doc:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis struct $type:ident as $shape_vis:vis $shape:ident $name:literal
        $(, place $place_vis:vis $place:ident)? $(, else |$other:ident| $from_other:block)?
        {$(
            $(#[doc = $key_doc:literal])+
            $presence:ident $member_vis:vis $member:ident $(($key:literal))?: $member_type:ty = $kind:expr
            $(, aliases $aliases:expr)? $(, default $default:literal)? $(, shown $shown:literal)?
            $(, from $from:expr)?,
        )*}
    )+) => {$(
        $(#[doc = $doc])+
        $(#[derive($($derive),+)])?
        $vis struct $type {
            $(
                /// Location in the file, if it was read from one.
                $place_vis $place: Option<$crate::SourceSpan>,
            )?
            $($(#[doc = $key_doc])+ $member_vis $member: $member_type,)*
        }

        $(#[doc = $doc])+
        $shape_vis static $shape: $crate::Shape = $crate::Shape {
            name: $name,
            doc: concat!($($doc),+).trim_ascii(),
            fields: &[$(
                $crate::Field::$presence(
                    $crate::document_shape!(@key $member $($key)?),
                    $kind,
                    concat!($($key_doc),+).trim_ascii(),
                )$(.aliases($aliases))?$(.default(stringify!($default)))?$(.default($shown))?
            ),*],
        };

        impl $crate::FromDocument for $type {
            fn from_view(view: $crate::NodeView<'_>) -> Option<Self> {
                let map = $crate::document_shape!(@map view $shape $($other $from_other)?);
                Some($type {
                    $($place: Some(view.place()),)?
                    $($member: {
                        let value = map.get($crate::document_shape!(@key $member $($key)?));
                        let value = value.and_then($crate::document_shape!(@from $($from)?));
                        $crate::document_shape!(@or_default $presence value $($default)?)
                    },)*
                })
            }
        }
    )+};
    ($(
        $(#[doc = $doc:literal])+
        $vis:vis static $shape:ident $name:literal { $($fields:tt)* }
    )+) => {$(
        $(#[doc = $doc])+
        $vis static $shape: $crate::Shape = $crate::Shape {
            name: $name,
            doc: concat!($($doc),+).trim_ascii(),
            fields: &$crate::document_fields!($($fields)*),
        };
    )+};
    ($(
        $(#[doc = $doc:literal])+
        $vis:vis const $field:ident: $presence:ident $key:literal = $kind:expr
        $(, aliases $aliases:expr)? $(, other_names $other_names:expr)? $(, shown $shown:literal)?,
    )+) => {$(
        $(#[doc = $doc])+
        $vis const $field: $crate::Field = $crate::document_fields!(
            $(#[doc = $doc])+
            $presence $key = $kind $(, aliases $aliases)? $(, other_names $other_names)? $(, shown $shown)?,
        )[0];
    )+};
    (@map $view:ident $shape:ident) => { $view.map(&$shape)? };
    (@map $view:ident $shape:ident $other:ident $from_other:block) => {
        match $view.map(&$shape) {
            Some(map) => map,
            None => {
                let $other = $view;
                return $from_other;
            }
        }
    };
    (@or_default required $value:ident) => { $value? };
    (@or_default optional $value:ident) => { $value.unwrap_or_default() };
    (@or_default optional $value:ident $default:literal) => { $value.unwrap_or($default) };
    (@from) => { $crate::FromDocument::from_view };
    (@from $from:expr) => { $from };
    (@key $member:ident) => { stringify!($member) };
    (@key $member:ident $key:literal) => { $key };
}

/// Declares keys as an array of [`Field`](super::Field): each with its description as a comment, whether it is
/// required, its name and its kind; `..FIELD` is a key that is declared elsewhere.
#[macro_export]
macro_rules! document_fields {
    ($(
        $(..$field:tt)?
        $(
            $(#[doc = $doc:literal])+
            $presence:ident $key:literal = $kind:expr
            $(, aliases $aliases:expr)? $(, other_names $other_names:expr)? $(, shown $shown:literal)?
        )?,
    )*) => {[$(
        $($field)?
        $(
            $crate::Field::$presence($key, $kind, concat!($($doc),+).trim_ascii())
                $(.aliases($aliases))?$(.other_names($other_names))?$(.default($shown))?
        )?
    ),*]};
}
