//! Decides which paths belong to which view, the part of the tree that a verifier depends on.
//!
//! A view with `inputs` is what they match minus its own `outputs`; one without is the whole tree.
//! The whole tree excludes the `outputs` of every verifier: what one check writes must not make
//! another's verdict stale, unless that one names it as an input.
//!
//! An ignored file counts for a view only if one of its globs names it before its first wildcard:
//! `node_modules/**` and `.env` do, `**` and `src/**` do not.

use checkrein_core::ids::VerifierName;
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use super::content::TreeEntryDigest;
use super::{TreeReaderError, UncompiledVerifierGlobs};

#[derive(Debug, Clone)]
pub(crate) struct VerifierPathMatcher {
    views: Vec<CompiledVerifierGlobs>,
    all_outputs: GlobSet,
}

#[derive(Debug, Clone)]
struct CompiledVerifierGlobs {
    name: VerifierName,
    /// `None`: the whole tree.
    inputs: Option<GlobSet>,
    /// The input globs that name ignored files.
    reaches: Vec<GlobIncludingIgnoredFiles>,
    outputs: GlobSet,
}

/// A glob whose part before the first wildcard names an ignored file or folder.
#[derive(Debug, Clone)]
pub(crate) struct GlobIncludingIgnoredFiles {
    /// The text before the first wildcard.
    pub(crate) start: String,
    glob: GlobSet,
}

impl GlobIncludingIgnoredFiles {
    fn glob_if_reaching_ignored_files(
        pattern: &str,
        is_left_out: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Self>, TreeReaderError> {
        let text = pattern.strip_prefix("./").unwrap_or(pattern);
        // A backslash ends the literal part as well: what it escapes is not a plain character of a
        // path.
        let end = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
        let start = text.get(..end).unwrap_or(text);
        // `**/x` asks for every `x` and would pull in all of `node_modules`: only a glob that
        // spells out the ignored place means it.
        if start.is_empty() || !is_left_out(start) {
            return Ok(None);
        }
        Ok(Some(Self {
            start: start.to_owned(),
            glob: compile_globs([pattern])?,
        }))
    }

    /// Returns whether the glob selects this file. A link in the place of the folder that it names
    /// is selected too.
    pub(crate) fn glob_matches_file(&self, path: &[u8]) -> bool {
        globs_match(&self.glob, path) || path == self.start.trim_end_matches('/').as_bytes()
    }

    /// Returns whether the glob may select this path or something below it.
    pub(crate) fn may_match_at_or_below(&self, path: &[u8]) -> bool {
        let start = self.start.as_bytes();
        let above = start
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with(b"/"));
        above || path.starts_with(start)
    }
}

/// Checks that a text can be an `inputs` or `outputs` glob.
///
/// # Errors
/// What is wrong with it.
pub fn check_glob(pattern: &str) -> Result<(), TreeReaderError> {
    compile_globs([pattern]).map(|_| ())
}

impl VerifierPathMatcher {
    pub(crate) fn new(
        views: &[UncompiledVerifierGlobs<'_>],
        is_left_out: &dyn Fn(&str) -> bool,
    ) -> Result<Self, TreeReaderError> {
        let all = views
            .iter()
            .flat_map(|view| view.outputs)
            .map(String::as_str);
        let globs = |view: &UncompiledVerifierGlobs<'_>| {
            let inputs = view.inputs.iter().map(String::as_str);
            let mut reaches = Vec::new();
            for pattern in view.inputs {
                reaches.extend(GlobIncludingIgnoredFiles::glob_if_reaching_ignored_files(
                    pattern,
                    is_left_out,
                )?);
            }
            Ok(CompiledVerifierGlobs {
                name: view.name.clone(),
                reaches,
                inputs: if view.inputs.is_empty() {
                    None
                } else {
                    Some(compile_globs(inputs)?)
                },
                outputs: compile_globs(view.outputs.iter().map(String::as_str))?,
            })
        };
        Ok(Self {
            all_outputs: compile_globs(all)?,
            views: views
                .iter()
                .map(globs)
                .collect::<Result<_, TreeReaderError>>()?,
        })
    }

    pub(crate) fn verifier_names(&self) -> impl Iterator<Item = &VerifierName> {
        self.views.iter().map(|view| &view.name)
    }

    /// The globs of all views that reach what ignore files leave out.
    pub(crate) fn globs_including_ignored_files(&self) -> Vec<GlobIncludingIgnoredFiles> {
        let reaches = self.views.iter().flat_map(|view| &view.reaches);
        reaches.cloned().collect()
    }

    /// Returns whether a path counts for the whole tree or for any view.
    pub(crate) fn is_path_in_tree_or_verifier_view(&self, path: &[u8], named: bool) -> bool {
        // A path that only a view names is no part of the whole tree, whose digest other verifiers
        // share.
        let in_tree =
            !named && (self.all_outputs.is_empty() || !globs_match(&self.all_outputs, path));
        let has = |view: &CompiledVerifierGlobs| {
            view.inputs.is_some() && view.view_includes_path(path, named)
        };
        in_tree || self.views.iter().any(has)
    }

    pub(crate) fn leaf_counts_in_whole_tree_digest(&self, leaf: &TreeEntryDigest<'_>) -> bool {
        !leaf.named && (self.all_outputs.is_empty() || !globs_match(&self.all_outputs, leaf.path))
    }

    /// Returns whether a leaf belongs to a view. A view of an unknown name is the whole tree.
    pub(crate) fn is_verifier_input(
        &self,
        name: &VerifierName,
        leaf: &TreeEntryDigest<'_>,
    ) -> bool {
        match self.views.iter().find(|view| view.name == *name) {
            Some(view) if view.inputs.is_some() => view.view_includes_path(leaf.path, leaf.named),
            // An unknown verifier errs on the side of more: a verdict that is stale too often is
            // run again, one that is never stale is wrong.
            Some(_) | None => self.leaf_counts_in_whole_tree_digest(leaf),
        }
    }

    /// Returns whether a view is the whole tree.
    pub(crate) fn covers_whole_tree(&self, name: &VerifierName) -> bool {
        self.views
            .iter()
            .all(|view| view.name != *name || view.inputs.is_none())
    }
}

impl CompiledVerifierGlobs {
    fn view_includes_path(&self, path: &[u8], named: bool) -> bool {
        let asks = match (&self.inputs, named) {
            // A named leaf is ignored by the ignore files; only the globs that spell it out may
            // claim it.
            (_, true) => self
                .reaches
                .iter()
                .any(|reach| reach.glob_matches_file(path)),
            (Some(inputs), false) => globs_match(inputs, path),
            (None, false) => true,
        };
        asks && (self.outputs.is_empty() || !globs_match(&self.outputs, path))
    }
}

fn globs_match(globs: &GlobSet, path: &[u8]) -> bool {
    globs.is_match_candidate(&Candidate::from_bytes(path))
}

fn compile_globs<'a>(
    patterns: impl IntoIterator<Item = &'a str>,
) -> Result<GlobSet, TreeReaderError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let error = |source| TreeReaderError::Glob {
            pattern: pattern.to_owned(),
            source,
        };
        let text = pattern
            .strip_prefix("./")
            .unwrap_or(pattern)
            .trim_end_matches('/');
        let glob = |text: &str| {
            // `*` does not cross a `/`, as in shells and ignore files; `**` does.
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
    set.build().map_err(|source| TreeReaderError::Glob {
        pattern: String::new(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, expected: bool) {
        assert_eq!(
            globs_match(&compile_globs([pattern]).unwrap(), path.as_bytes()),
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
