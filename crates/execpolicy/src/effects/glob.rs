//! Path patterns against paths that are patterns themselves: a rule says `tests/**`, a command
//! `t*/x.py`. Nothing is looked up, so the question is whether the two can mean one file.

/// Bytes of a component that are compared; what is longer can mean anything.
const LONGEST: usize = 256;

/// Whether two components can be equal; `*`, `?` and `[...]` in either stand for what they stand
/// for in a shell.
pub(crate) fn meets(a: &str, b: &str) -> bool {
    if !wild(a) && !wild(b) {
        return a == b;
    }
    let (a, b) = (atoms(a), atoms(b));
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
            let here = (i == 0 && j == 0)
                || (above && left == Some(&Atom::Any))
                || (beside && right == Some(&Atom::Any))
                || (above && right == Some(&Atom::Any))
                || (beside && left == Some(&Atom::Any))
                || (both && one(left, right));
            if let Some(cell) = row.get_mut(j) {
                *cell = here;
            }
        }
        reach = row;
    }
    reach.last().copied().unwrap_or(true)
}

fn one(left: Option<&Atom>, right: Option<&Atom>) -> bool {
    match (left, right) {
        (Some(Atom::Char(a)), Some(Atom::Char(b))) => a == b,
        (Some(_), Some(_)) => true,
        _ => false,
    }
}

#[derive(PartialEq, Eq)]
enum Atom {
    Char(char),
    One,
    Any,
}

fn atoms(text: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        atoms.push(match c {
            '*' => Atom::Any,
            '?' => Atom::One,
            '[' if chars.clone().any(|c| c == ']') => {
                // `[]x]`: a bracket that comes first is one of the class.
                for (at, c) in chars.by_ref().enumerate() {
                    if c == ']' && at > 0 {
                        break;
                    }
                }
                Atom::One
            }
            c => Atom::Char(c),
        });
    }
    atoms
}

/// Whether a component is a pattern.
pub(crate) fn wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// How surely a path is one that a pattern names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hit {
    /// Not at all.
    No,
    /// It can be.
    May,
    /// It is.
    Sure,
}

/// Whether the path of these components is one that the pattern means. `below`: whatever lies
/// under the path is meant, too, as with `rm -r`.
pub(crate) fn names(pattern: &[&str], path: &[&str], below: bool) -> Hit {
    let fixed = path.iter().take_while(|part| !wild(part)).count();
    let known = path.get(..fixed).unwrap_or(&[]);
    if fixed == path.len() {
        if reaches(pattern, path) {
            return Hit::Sure;
        }
    } else if everything_below(pattern, known) {
        return Hit::Sure;
    } else if reaches(pattern, path) {
        return Hit::May;
    }
    if below && above(pattern, path) {
        // `tests/**` has a folder that is certainly under it; `**/*.snap` may have none.
        let certain = fixed == path.len() && !pattern.first().is_some_and(|part| wild(part));
        return if certain { Hit::Sure } else { Hit::May };
    }
    Hit::No
}

/// Whether the two can mean one path; `**` stands for any number of components.
fn reaches(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            reaches(rest, path)
                || path
                    .split_first()
                    .is_some_and(|(_, path)| reaches(pattern, path))
        }
        (_, Some((&"**", rest))) => {
            reaches(pattern, rest)
                || pattern
                    .split_first()
                    .is_some_and(|(_, pattern)| reaches(pattern, path))
        }
        (Some((a, pattern)), Some((b, path))) => meets(a, b) && reaches(pattern, path),
        _ => false,
    }
}

/// Whether the pattern means every path below this folder.
fn everything_below(pattern: &[&str], folder: &[&str]) -> bool {
    match (pattern.split_first(), folder.split_first()) {
        (Some((&"**", [])), _) => true,
        (Some((a, pattern)), Some((b, folder))) => {
            meets(a, b) && !wild(b) && everything_below(pattern, folder)
        }
        _ => false,
    }
}

/// Whether something that the pattern means can lie under this path.
fn above(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (_, None) | (Some((&"**", _)), _) | (_, Some((&"**", _))) => true,
        (Some((a, pattern)), Some((b, path))) => meets(a, b) && above(pattern, path),
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
            assert_eq!(meets(a, b), expected, "{a} {b}");
            assert_eq!(meets(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn paths_and_patterns() {
        let split = |text: &'static str| -> Vec<&str> { text.split('/').collect() };
        for (pattern, path, below, expected) in [
            ("tests/**", "tests/a.py", false, Hit::Sure),
            ("tests/**", "tests/a/b.py", false, Hit::Sure),
            ("tests/**", "src/a.py", true, Hit::No),
            ("tests/**", "tests/*.py", false, Hit::Sure),
            ("tests/**", "t*/a.py", false, Hit::May),
            ("tests/**", "tests", true, Hit::Sure),
            ("tests/**/*.snap", "tests/a", true, Hit::Sure),
            ("**/*.snap", "src", true, Hit::May),
            ("**/*.snap", "src/a.snap", false, Hit::Sure),
            ("**/*.snap", "src/*.rs", false, Hit::No),
            ("Cargo.lock", "Cargo.lock", false, Hit::Sure),
            ("Cargo.lock", "Cargo.toml", true, Hit::No),
            ("tests/**", "**", false, Hit::May),
            ("a/b/c", "a/b", true, Hit::Sure),
        ] {
            let hit = names(&split(pattern), &split(path), below);
            assert_eq!(hit, expected, "{pattern} {path} {below}");
        }
        assert_eq!(names(&["tests", "**"], &[], true), Hit::Sure);
    }
}
