//! Which paths belong to which view.
//!
//! A view with `inputs` is what they match minus its own `outputs`; one without is the whole
//! tree. The whole tree is without the `outputs` of all: what one check writes must not make
//! another's verdict stale, unless that one names it as an input.

use checkrein_core::ids::VerifierName;
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use super::{TreeError, View};

#[derive(Debug, Clone)]
pub(crate) struct Selector {
    views: Vec<ViewGlobs>,
    all_outputs: GlobSet,
}

#[derive(Debug, Clone)]
struct ViewGlobs {
    name: VerifierName,
    /// `None`: the whole tree.
    inputs: Option<GlobSet>,
    outputs: GlobSet,
}

/// Whether a text can be an `inputs` or `outputs` glob.
///
/// # Errors
/// What is wrong with it.
pub fn check_glob(pattern: &str) -> Result<(), TreeError> {
    compile([pattern]).map(|_| ())
}

impl Selector {
    pub(crate) fn new(views: &[View<'_>]) -> Result<Self, TreeError> {
        let all = views
            .iter()
            .flat_map(|view| view.outputs)
            .map(String::as_str);
        let globs = |view: &View<'_>| {
            let inputs = view.inputs.iter().map(String::as_str);
            Ok(ViewGlobs {
                name: view.name.clone(),
                inputs: if view.inputs.is_empty() {
                    None
                } else {
                    Some(compile(inputs)?)
                },
                outputs: compile(view.outputs.iter().map(String::as_str))?,
            })
        };
        Ok(Self {
            all_outputs: compile(all)?,
            views: views.iter().map(globs).collect::<Result<_, TreeError>>()?,
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &VerifierName> {
        self.views.iter().map(|view| &view.name)
    }

    /// Whether a path counts for the whole tree or for any view.
    pub(crate) fn counts(&self, path: &[u8]) -> bool {
        self.all_outputs.is_empty()
            || self.in_tree(path)
            || self
                .views
                .iter()
                .any(|view| view.inputs.is_some() && view.has(path))
    }

    pub(crate) fn in_tree(&self, path: &[u8]) -> bool {
        self.all_outputs.is_empty() || !matches(&self.all_outputs, path)
    }

    /// Whether a path belongs to a view; every path of the tree belongs to one nobody knows.
    pub(crate) fn in_view(&self, name: &VerifierName, path: &[u8]) -> bool {
        match self.views.iter().find(|view| view.name == *name) {
            Some(view) if view.inputs.is_some() => view.has(path),
            Some(_) | None => self.in_tree(path),
        }
    }

    /// Whether a view is the whole tree.
    pub(crate) fn is_whole(&self, name: &VerifierName) -> bool {
        self.views
            .iter()
            .all(|view| view.name != *name || view.inputs.is_none())
    }
}

impl ViewGlobs {
    fn has(&self, path: &[u8]) -> bool {
        self.inputs
            .as_ref()
            .is_none_or(|inputs| matches(inputs, path))
            && (self.outputs.is_empty() || !matches(&self.outputs, path))
    }
}

fn matches(globs: &GlobSet, path: &[u8]) -> bool {
    globs.is_match_candidate(&Candidate::from_bytes(path))
}

fn compile<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<GlobSet, TreeError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let error = |source| TreeError::Glob {
            pattern: pattern.to_owned(),
            source,
        };
        let text = pattern
            .strip_prefix("./")
            .unwrap_or(pattern)
            .trim_end_matches('/');
        let glob = |text: &str| {
            GlobBuilder::new(text)
                .literal_separator(true)
                .backslash_escape(true)
                .build()
        };
        set.add(glob(text).map_err(error)?);
        // A folder means all that is in it. Otherwise `inputs = ["src"]` would match nothing,
        // and a verdict about nothing is fresh for ever.
        if !text.ends_with("**") {
            set.add(glob(&format!("{text}/**")).map_err(error)?);
        }
    }
    set.build().map_err(|source| TreeError::Glob {
        pattern: String::new(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, expected: bool) {
        assert_eq!(
            matches(&compile([pattern]).unwrap(), path.as_bytes()),
            expected,
            "{pattern} {path}"
        );
    }

    #[test]
    fn globs_mean_what_people_mean() {
        check("src/**", "src/a/b.rs", true);
        check("src", "src/a/b.rs", true);
        check("src/", "src/a/b.rs", true);
        check("./src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/a/b.rs", false);
        check("Cargo.*", "Cargo.lock", true);
        check("Cargo.*", "sub/Cargo.lock", false);
        check("**/*.py", "a.py", true);
        check("**/*.py", "a/b/c.py", true);
        check("{src,tests}/**", "tests/a", true);
        check("src", "srcs/a", false);
        assert!(
            check_glob("a[")
                .unwrap_err()
                .to_string()
                .contains("'a[' is not a glob")
        );
    }
}
