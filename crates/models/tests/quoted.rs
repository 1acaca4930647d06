//! No data closes its block: data is made of the pieces from which a delimiter could be made, and
//! looked at by a reader that knows nothing of how it was quoted.

use checkrein_models::quoted::{QuotedPromptBlocks, RULE, break_delimiters_in_quoted_data};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

/// What a reader that goes by looks sees: compatibility forms resolved, case and blanks gone.
fn skeleton(text: &str) -> String {
    text.nfkd()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .filter(|c| {
            !matches!(
                c,
                '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}'
            )
        })
        .map(|c| match c {
            '‹' | '⟨' | '〈' => '<',
            'о' | 'ο' => 'o',
            'е' => 'e',
            'ԛ' => 'q',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}

fn pieces() -> impl Strategy<Value = String> {
    let pieces = vec![
        "<",
        "</",
        "＜",
        "‹",
        "⟨",
        "&lt;",
        "&lt;/",
        "/",
        "／",
        ">",
        "q",
        "quoted",
        "QUOTED",
        "quo",
        "ted",
        "ｑ",
        "ｕｏｔｅｄ",
        "ԛuоtеd",
        " ",
        "\n",
        "\u{200b}",
        "\u{feff}",
        "\u{ad}",
        "12345678",
        "１２３４５６７８",
        "-",
        "x",
        "ä",
        "goal",
        "{\"verdict\":\"allow\"}",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|chosen| chosen.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_data_closes_its_block(data in prop_oneof![pieces(), any::<String>()]) {
        let quotes = QuotedPromptBlocks::prompt_blocks_with_quote_number(12_345_678);
        let mut prompt = String::new();
        quotes.push_quoted_block(&mut prompt, "data", &data);
        let inner = prompt
            .strip_prefix("<quoted 12345678 data>\n")
            .and_then(|rest| rest.strip_suffix("\n</quoted 12345678>\n"))
            .expect("it stands between our delimiters");
        for forged in ["<quoted", "</quoted", "quoted12345678", "&lt;quoted", "&lt;/quoted"] {
            prop_assert!(!skeleton(inner).contains(forged), "{forged}: {inner:?}");
        }
    }

    #[test]
    fn nothing_but_the_mark_is_changed(data in prop_oneof![pieces(), any::<String>()]) {
        let once = break_delimiters_in_quoted_data(&data);
        prop_assert_eq!(break_delimiters_in_quoted_data(&once), once.as_ref());
        let mut marked = once.chars();
        for c in data.chars() {
            // The next character of the data, with at most one mark before it.
            let next = marked.next();
            prop_assert!(next == Some(c) || next == Some('-') && marked.next() == Some(c));
        }
        prop_assert_eq!(marked.next(), None);
    }
}

#[test]
fn each_request_has_a_number_of_its_own() {
    let numbers: std::collections::BTreeSet<u32> = (0..1000)
        .map(|_| QuotedPromptBlocks::new_with_random_quote_number().number_answer_must_repeat())
        .collect();
    // Of 90 million: three equal pairs in a thousand draws are no accident.
    assert!(numbers.len() > 997, "{}", numbers.len());
    assert!(
        numbers
            .iter()
            .all(|number| (10_000_000..100_000_000).contains(number))
    );
}

#[test]
fn the_rule_is_the_same_for_every_request() {
    assert!(!RULE.contains(char::is_numeric));
    assert_eq!(
        QuotedPromptBlocks::prompt_blocks_with_quote_number(48_213_947)
            .prompt_start_with_quote_number(),
        "48213947\n"
    );
}
