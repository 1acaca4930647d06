//! Computes identities that survive line shifts and noise: what differs between two runs of the
//! same failure (numbers, addresses, hashes, temporary paths) is replaced by `#`.

use crate::output::truncate_text_to_bytes;
use crate::patterns::LazyRegex;

/// Limits in bytes of a message and of an id.
const MESSAGE_BYTES: usize = 300;
const ID_BYTES: usize = 200;

static NOISE: LazyRegex = LazyRegex::new(
    "",
    r"(?:/private)?(?:/var/folders|/tmp)/[^\s'\x22)\]]+|0x[0-9a-fA-F]+|\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{5,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9]+",
);

static DOCTEST_LINE: LazyRegex = LazyRegex::new("(line ", r"\(line [0-9]+\)");

/// Returns the id of a finding that has only a message.
pub(crate) fn message_as_finding_id(message: &str) -> String {
    truncate_text_to_bytes(NOISE.replace_all_regex_matches(message, "#"), ID_BYTES)
}

/// Returns the id of a test: its name, except for the line number that rustdoc puts into it.
pub(crate) fn finding_id_from_test(test: &str) -> String {
    truncate_text_to_bytes(
        DOCTEST_LINE.replace_all_regex_matches(test, "(line #)"),
        ID_BYTES,
    )
}

/// Returns the message on one line of bounded length, with blanks collapsed.
pub(crate) fn one_line(message: &str) -> String {
    truncate_text_to_bytes(
        message.split_whitespace().collect::<Vec<_>>().join(" "),
        MESSAGE_BYTES,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_goes_and_names_stay() {
        let check =
            |message: &str, expected: &str| assert_eq!(message_as_finding_id(message), expected);
        check("assert 3 == 4 after 0.25s", "assert # == # after #.#s");
        check("object at 0x7f3a2b1c is gone", "object at # is gone");
        check(
            "cannot open /tmp/pytest-of-me/x1/a.txt: gone",
            "cannot open # gone",
        );
        check("commit 3f9c2e1ab77 is bad", "commit # is bad");
        check("id 123e4567-e89b-12d3-a456-426614174000", "id #");
        check(
            "cannot find `value2` in module a1",
            "cannot find `value2` in module a1",
        );
        check("defaced facade", "defaced facade");
        assert_eq!(
            finding_id_from_test("src/lib.rs - f (line 12)"),
            "src/lib.rs - f (line #)"
        );
        assert_eq!(finding_id_from_test("a::test_1"), "a::test_1");
        assert_eq!(one_line("  a\n\t b  "), "a b");
        assert_eq!(one_line(&"\u{fc}".repeat(1000)).len(), MESSAGE_BYTES);
    }
}
