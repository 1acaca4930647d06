//! Digests (BLAKE3) of bytes, parts and JSON. JSON is hashed in a canonical form with sorted keys,
//! because another crate in the build can change the map order of `serde_json` by a feature flag.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A 256-bit BLAKE3 digest; hex in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of several parts, each preceded by its length, so that no two
    /// different lists of parts share bytes.
    pub fn hash_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            // Without the length, ("ab", "c") and ("a", "bc") would have the same digest.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The digest of a JSON value in canonical form: object keys sorted, no blanks.
    pub fn hash_json(value: &Value) -> Self {
        let mut text = String::new();
        write_canonical_json(value, &mut text);
        Self::hash_bytes(text.as_bytes())
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A digest from raw bytes, as a store keeps them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first eight bytes, for windows and sets that must stay small.
    pub fn to_eight_byte_digest(&self) -> EightByteDigest {
        let mut first = [0; 8];
        first.copy_from_slice(self.0.first_chunk::<8>().unwrap_or(&[0; 8]));
        EightByteDigest(u64::from_le_bytes(first))
    }

    /// Lower-case hex, 64 characters.
    pub fn to_hex(&self) -> String {
        use fmt::Write as _;
        self.0
            .iter()
            .fold(String::with_capacity(64), |mut text, byte| {
                // Writing to a String cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    /// Parses the output of [`Digest::to_hex`].
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return None;
        }
        let mut out = [0; 32];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            let text = std::str::from_utf8(pair).ok()?;
            *slot = u8::from_str_radix(text, 16).ok()?;
        }
        Some(Self(out))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.to_hex())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&self.to_hex())
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
            Self::from_hex(&text)
                .ok_or_else(|| serde::de::Error::custom("not a 64-digit hex digest"))
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Self)
        }
    }
}

/// Eight bytes of a digest: enough to tell entries of one task apart, small enough
/// for windows and sets in the state cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EightByteDigest(pub u64);

// A number in JSON. The state cache takes eight plain bytes, because a varint of a random number
// takes up to ten.
impl Serialize for EightByteDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_u64(self.0)
        } else {
            self.0.to_le_bytes().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for EightByteDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            u64::deserialize(deserializer).map(Self)
        } else {
            <[u8; 8]>::deserialize(deserializer).map(|bytes| Self(u64::from_le_bytes(bytes)))
        }
    }
}

fn write_canonical_json(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical_json(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            // `serde_json` keeps insertion order if any crate in the build enables
            // `preserve_order`.
            entries.sort_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (key, item) in entries {
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical_json(item, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_matter_but_values_do() {
        let a = Digest::hash_json(&json!({"a": 1, "b": [true, {"x": null, "y": "z"}]}));
        let b: Value = serde_json::from_str(r#"{"b":[true,{"y":"z","x":null}],"a":1}"#).unwrap();
        assert_eq!(a, Digest::hash_json(&b));
        assert_ne!(
            a,
            Digest::hash_json(&json!({"a": 2, "b": [true, {"x": null, "y": "z"}]}))
        );
        assert_ne!(
            Digest::hash_json(&json!(["a", "b"])),
            Digest::hash_json(&json!(["a\",\"b"]))
        );
    }

    #[test]
    fn hex_round_trips() {
        let digest = Digest::hash_bytes(b"x");
        assert_eq!(Digest::from_hex(&digest.to_hex()), Some(digest));
        assert_eq!(Digest::from_hex("zz"), None);
    }
}
