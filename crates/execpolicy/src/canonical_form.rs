//! The form of a word that ignores letter case and the composition of characters;
//! `canonical_matching` compares words in this form.

use caseless::Caseless as _;
use unicode_normalization::UnicodeNormalization as _;

/// Returns Unicode's canonical caseless form (definition D145).
pub(crate) fn unicode_caseless_form(word: &str) -> String {
    // For ASCII the canonical caseless form is the lower case.
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    // Folding can bring in composed characters again, so the result is decomposed once more.
    word.nfd().default_case_fold().nfd().collect()
}

/// Returns whether two words differ only in letter case and in how accents are written.
pub(crate) fn equals_unicode_caseless(one: &str, other: &str) -> bool {
    one == other || unicode_caseless_form(one) == unicode_caseless_form(other)
}

#[cfg(test)]
mod tests {
    use super::equals_unicode_caseless;

    #[test]
    fn case_and_composition_do_not_count() {
        for (one, other) in [
            ("git", "GIT"),
            ("", ""),
            ("e\u{301}", "\u{c9}"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{212a}", "k"),
            ("\u{3c3}", "\u{3c2}"),
            ("\u{fb01}", "FI"),
            ("\u{130}", "i\u{307}"),
            ("\u{1f80}", "\u{1f00}\u{3b9}"),
            ("\u{13a0}", "\u{ab70}"),
        ] {
            assert!(equals_unicode_caseless(one, other), "{one:?} {other:?}");
        }
        for (one, other) in [
            ("git", "git.exe"),
            ("git", " git"),
            ("\u{2460}", "1"),
            ("\u{ff21}", "A"),
            ("I", "\u{131}"),
            ("a\u{ad}", "a"),
        ] {
            assert!(!equals_unicode_caseless(one, other), "{one:?} {other:?}");
        }
    }
}
