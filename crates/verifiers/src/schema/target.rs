//! What is judged: a file of the tree by its plain name, or the final message. Nothing is read
//! through a symbolic link: the tree's digest would not see what is behind it change.

use std::fmt;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::MAX_DOCUMENT;
use super::document::Unfit;
use crate::DefinitionError;
use crate::tree::is_ours_to_count;

/// The word for the final message.
const MESSAGE: &str = "message";

/// See [`Target::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A file, `/`-separated, below the root.
    File(String),
    Message,
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, DefinitionError> {
        if text == MESSAGE {
            return Ok(Self::Message);
        }
        let wrong = |what: &str| {
            Err(DefinitionError::Target {
                what: format!("'{text}' {what}"),
            })
        };
        if text.trim().is_empty() {
            return Err(DefinitionError::Empty { key: "target" });
        }
        if text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            return wrong("is a pattern; write the name of one file, or \"message\"");
        }
        if !is_ours_to_count(text) {
            return wrong(
                "is no name of a file of the tree; write it from the config's folder on, without . and ..",
            );
        }
        Ok(Self::File(text.to_owned()))
    }

    pub(super) fn file(&self) -> Option<String> {
        match self {
            Self::File(name) => Some(name.clone()),
            Self::Message => None,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::File(name) => name,
            Self::Message => MESSAGE,
        }
    }

    /// By its ending.
    pub(super) fn is_markdown(&self) -> bool {
        let ending = Path::new(self.name()).extension();
        let ending = ending.map(|ending| ending.to_string_lossy().to_lowercase());
        matches!(self, Self::File(_)) && matches!(ending.as_deref(), Some("md" | "markdown"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => formatter.write_str(name),
            Self::Message => formatter.write_str("the final message"),
        }
    }
}

/// The file's text.
pub(super) fn read(root: &Path, name: &str) -> Result<String, Unfit> {
    let mut path = root.to_owned();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => {
                return Err(Unfit::new(
                    "missing",
                    format!("{name} is not there: write it"),
                ));
            }
            Err(error) => {
                return Err(Unfit::new(
                    "unreadable",
                    format!("{name} cannot be read: {error}"),
                ));
            }
        };
        let what = if found.is_symlink() {
            "is reached through a symbolic link, which is not followed: put the file itself there"
        } else if parts.peek().is_some() && !found.is_dir() {
            "is not there, since a file stands where a folder is meant: write it"
        } else if parts.peek().is_none() && !found.is_file() {
            "is no regular file: put a file there"
        } else {
            continue;
        };
        return Err(Unfit::new("no-file", format!("{name} {what}")));
    }
    let unreadable =
        |error: std::io::Error| Unfit::new("unreadable", format!("{name} cannot be read: {error}"));
    let file = std::fs::File::open(&path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_DOCUMENT {
        return Err(too_large(name));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..good).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Unfit {
            id: "utf-8",
            line: u32::try_from(line).ok(),
            what: format!("{name} is not UTF-8 text"),
        }
    })
}

/// The final message, if it can be judged.
pub(super) fn message(text: &str) -> Result<String, Unfit> {
    if text.len() > MAX_DOCUMENT {
        return Err(too_large("the final message"));
    }
    Ok(text.to_owned())
}

fn too_large(name: &str) -> Unfit {
    let limit = MAX_DOCUMENT >> 20;
    Unfit::new(
        "too-large",
        format!("{name} is larger than {limit} MiB: make it shorter"),
    )
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_plain_names() {
        assert_eq!(Target::parse("message").unwrap(), Target::Message);
        let file = Target::parse("out/report.json").unwrap();
        assert_eq!(file, Target::File("out/report.json".to_owned()));
        for bad in [
            "",
            " ",
            "/etc/passwd",
            "../a.json",
            "a/../b",
            "./a",
            "a//b",
            "out/",
            "*.json",
            "a\\b",
            ".git/config",
            ".checkrein/a.json",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn markdown_is_told_by_the_name() {
        let check = |name: &str, expected| {
            assert_eq!(
                Target::parse(name).unwrap().is_markdown(),
                expected,
                "{name}"
            );
        };
        check("a.md", true);
        check("out/A.MARKDOWN", true);
        check("a.json", false);
        check("md", false);
    }
}
