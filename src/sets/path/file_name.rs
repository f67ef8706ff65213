//! One segment of a path: the name of a file in its directory.
//!
//! Says nothing of which bytes may stand in one: that is asked where a path is read.

use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// A name in a directory, as bytes. Nearly all are short: those stand in place, so that thousands of paths are copied
/// without asking for memory.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(SmallVec<[u8; 24]>);

impl Clone for FileName {
    fn clone(&self) -> Self {
        // Bytes are copied at once; `SmallVec` itself clones them one by one.
        Self(SmallVec::from_slice(&self.0))
    }
}

impl Deref for FileName {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for FileName {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Equal bytes hash alike in a name and in a slice, so a table of names is asked by a slice.
impl std::borrow::Borrow<[u8]> for FileName {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for FileName {
    fn from(bytes: &T) -> Self {
        Self(SmallVec::from_slice(bytes.as_ref()))
    }
}

impl From<Vec<u8>> for FileName {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl PartialEq<[u8]> for FileName {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl serde::Serialize for FileName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Readable where that is wanted; a name that is not UTF-8 is a list of numbers there.
        match std::str::from_utf8(self) {
            Ok(text) if serializer.is_human_readable() => serializer.serialize_str(text),
            _ => serializer.serialize_bytes(self),
        }
    }
}

impl<'de> serde::Deserialize<'de> for FileName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return <&[u8]>::deserialize(deserializer).map(Self::from);
        }
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Name {
            Text(String),
            Bytes(Vec<u8>),
        }
        Name::deserialize(deserializer).map(|name| match name {
            Name::Text(text) => Self::from(text.as_bytes()),
            Name::Bytes(bytes) => Self::from(bytes),
        })
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self))
    }
}
