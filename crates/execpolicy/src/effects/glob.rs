//! Compares path patterns with paths that are patterns themselves: a rule names `tests/**`, a
//! command `t*/x.py`. Nothing is looked up in the file system, so the answer is whether both can
//! mean one file.

/// Maximum atoms of a component; a longer one is taken to match anything.
const LONGEST: usize = 256;

/// Whether two components can be equal; `*`, `?` and `[...]` in either have the meaning that the
/// shell gives them.
pub(crate) fn globs_intersect(a: &str, b: &str) -> bool {
    if !is_glob(a) && !is_glob(b) {
        return a == b;
    }
    let (a, b) = (parse_glob_atoms(a), parse_glob_atoms(b));
    // The table below is quadratic. Too long counts as a match, which is the careful answer.
    if a.len() > LONGEST || b.len() > LONGEST {
        return true;
    }
    // reach[j]: the first i atoms of `a` and the first j of `b` can mean the same text.
    let mut reach = vec![false; b.len() + 1];
    for i in 0..=a.len() {
        let left = i.checked_sub(1).and_then(|at| a.get(at));
        let mut row = vec![false; b.len() + 1];
        for j in 0..=b.len() {
            let right = j.checked_sub(1).and_then(|at| b.get(at));
            let above = reach.get(j).copied().unwrap_or(false) && i > 0;
            let beside = j
                .checked_sub(1)
                .and_then(|at| row.get(at))
                .copied()
                .unwrap_or(false);
            let both = i > 0
                && j.checked_sub(1)
                    .and_then(|at| reach.get(at))
                    .copied()
                    .unwrap_or(false);
            // A `*` of either side takes nothing or one more atom of the other; else both sides
            // move by one.
            let here = (i == 0 && j == 0)
                || (above && left == Some(&GlobAtom::Any))
                || (beside && right == Some(&GlobAtom::Any))
                || (above && right == Some(&GlobAtom::Any))
                || (beside && left == Some(&GlobAtom::Any))
                || (both && glob_atoms_overlap(left, right));
            if let Some(cell) = row.get_mut(j) {
                *cell = here;
            }
        }
        reach = row;
    }
    reach.last().copied().unwrap_or(true)
}

fn glob_atoms_overlap(left: Option<&GlobAtom>, right: Option<&GlobAtom>) -> bool {
    match (left, right) {
        (Some(GlobAtom::Char(a)), Some(GlobAtom::Char(b))) => a == b,
        // Classes are not compared: `[ab]` meets any character, which can only match too much.
        (Some(_), Some(_)) => true,
        _ => false,
    }
}

#[derive(PartialEq, Eq)]
enum GlobAtom {
    Char(char),
    One,
    Any,
}

fn parse_glob_atoms(text: &str) -> Vec<GlobAtom> {
    let mut atoms = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        atoms.push(match c {
            '*' => GlobAtom::Any,
            '?' => GlobAtom::One,
            '[' if chars.clone().any(|c| c == ']') => {
                // `[]x]`: a bracket that comes first is one of the class.
                for (at, c) in chars.by_ref().enumerate() {
                    if c == ']' && at > 0 {
                        break;
                    }
                }
                GlobAtom::One
            }
            c => GlobAtom::Char(c),
        });
    }
    atoms
}

/// Whether a component contains wildcards.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// How certain it is that a path is one that a pattern names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GlobMatchCertainty {
    /// Not at all.
    No,
    /// It can be.
    Possible,
    /// It is.
    Certain,
}

/// Whether the path of these components is one that the pattern names. `below` includes whatever
/// lies under the path, as with `rm -r`.
pub(crate) fn path_pattern_match_certainty(
    pattern: &[&str],
    path: &[&str],
    below: bool,
) -> GlobMatchCertainty {
    let fixed = path.iter().take_while(|part| !is_glob(part)).count();
    let known = path.get(..fixed).unwrap_or(&[]);
    // A path without wildcards is one file, so a match of the pattern is certain.
    if fixed == path.len() {
        if path_patterns_intersect(pattern, path) {
            return GlobMatchCertainty::Certain;
        }
    // Whatever the wildcards stand for, it lies below a folder that the pattern covers.
    } else if glob_covers_subtree(pattern, known) {
        return GlobMatchCertainty::Certain;
    } else if path_patterns_intersect(pattern, path) {
        return GlobMatchCertainty::Possible;
    }
    if below && may_match_below(pattern, path) {
        // `tests/**` has a folder that is certainly under it; `**/*.snap` may have none.
        let certain = fixed == path.len() && !pattern.first().is_some_and(|part| is_glob(part));
        return if certain {
            GlobMatchCertainty::Certain
        } else {
            GlobMatchCertainty::Possible
        };
    }
    GlobMatchCertainty::No
}

/// Whether both can name one path; `**` stands for any number of components.
fn path_patterns_intersect(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            path_patterns_intersect(rest, path)
                || path
                    .split_first()
                    .is_some_and(|(_, path)| path_patterns_intersect(pattern, path))
        }
        (_, Some((&"**", rest))) => {
            path_patterns_intersect(pattern, rest)
                || pattern
                    .split_first()
                    .is_some_and(|(_, pattern)| path_patterns_intersect(pattern, path))
        }
        (Some((a, pattern)), Some((b, path))) => {
            globs_intersect(a, b) && path_patterns_intersect(pattern, path)
        }
        _ => false,
    }
}

/// Whether the pattern matches every path below this folder.
fn glob_covers_subtree(pattern: &[&str], folder: &[&str]) -> bool {
    match (pattern.split_first(), folder.split_first()) {
        (Some((&"**", [])), _) => true,
        (Some((a, pattern)), Some((b, folder))) => {
            globs_intersect(a, b) && !is_glob(b) && glob_covers_subtree(pattern, folder)
        }
        _ => false,
    }
}

/// Whether something that the pattern names can lie under this path.
fn may_match_below(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (_, None) | (Some((&"**", _)), _) | (_, Some((&"**", _))) => true,
        (Some((a, pattern)), Some((b, path))) => {
            globs_intersect(a, b) && may_match_below(pattern, path)
        }
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_that_can_be_one() {
        for (a, b, expected) in [
            ("a", "a", true),
            ("a", "b", false),
            ("*", "", true),
            ("*.py", "test_*", true),
            ("*.py", "a.rs", false),
            ("t?st", "test", true),
            ("[ab]c", "bc", true),
            ("id_*", "i*", true),
            ("id_*", "*.pub", true),
            ("a*b", "b*a", false),
        ] {
            assert_eq!(globs_intersect(a, b), expected, "{a} {b}");
            assert_eq!(globs_intersect(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn paths_and_patterns() {
        let split = |text: &'static str| -> Vec<&str> { text.split('/').collect() };
        for (pattern, path, below, expected) in [
            ("tests/**", "tests/a.py", false, GlobMatchCertainty::Certain),
            (
                "tests/**",
                "tests/a/b.py",
                false,
                GlobMatchCertainty::Certain,
            ),
            ("tests/**", "src/a.py", true, GlobMatchCertainty::No),
            ("tests/**", "tests/*.py", false, GlobMatchCertainty::Certain),
            ("tests/**", "t*/a.py", false, GlobMatchCertainty::Possible),
            ("tests/**", "tests", true, GlobMatchCertainty::Certain),
            (
                "tests/**/*.snap",
                "tests/a",
                true,
                GlobMatchCertainty::Certain,
            ),
            ("**/*.snap", "src", true, GlobMatchCertainty::Possible),
            (
                "**/*.snap",
                "src/a.snap",
                false,
                GlobMatchCertainty::Certain,
            ),
            ("**/*.snap", "src/*.rs", false, GlobMatchCertainty::No),
            (
                "Cargo.lock",
                "Cargo.lock",
                false,
                GlobMatchCertainty::Certain,
            ),
            ("Cargo.lock", "Cargo.toml", true, GlobMatchCertainty::No),
            ("tests/**", "**", false, GlobMatchCertainty::Possible),
            ("a/b/c", "a/b", true, GlobMatchCertainty::Certain),
        ] {
            let hit = path_pattern_match_certainty(&split(pattern), &split(path), below);
            assert_eq!(hit, expected, "{pattern} {path} {below}");
        }
        assert_eq!(
            path_pattern_match_certainty(&["tests", "**"], &[], true),
            GlobMatchCertainty::Certain
        );
    }
}
