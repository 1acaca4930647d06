//! Data that is shown to a model: whatever it is, nothing in its block looks like the block's end,
//! and nothing but marks is put into it.
#![no_main]

use checkrein_models::quoted::{
    KeepTextStartOrEnd, QuotedPromptBlocks, break_delimiters_in_quoted_data, clip_text,
};
use libfuzzer_sys::fuzz_target;
use unicode_normalization::UnicodeNormalization;

fuzz_target!(|data: &str| {
    let quotes = QuotedPromptBlocks::prompt_blocks_with_quote_number(12_345_678);
    let mut prompt = String::new();
    quotes.push_quoted_block(&mut prompt, "data", data);
    let inner = prompt
        .strip_prefix("<quoted 12345678 data>\n")
        .and_then(|rest| rest.strip_suffix("\n</quoted 12345678>\n"))
        .expect("it stands between our delimiters");
    assert_eq!(
        break_delimiters_in_quoted_data(inner),
        inner,
        "broken twice"
    );
    // Not the way in which it is found: compatibility forms of the whole, blanks gone.
    let plain: String = inner
        .nfkd()
        .filter(|c| !c.is_whitespace() && !c.is_control() && *c != '\u{200b}')
        .flat_map(char::to_lowercase)
        .collect();
    for forged in ["<quoted", "</quoted", "[/quoted", "quoted12345678"] {
        assert!(!plain.contains(forged), "{forged} in {inner:?}");
    }
    for keep in [KeepTextStartOrEnd::Start, KeepTextStartOrEnd::End] {
        let cut = clip_text(data, 64, keep);
        assert!(cut.len() <= 64 + 40, "{cut}");
    }
});
