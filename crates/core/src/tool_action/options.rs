//! Reads what options in a tool's arguments ask for: `--fix`, `-o FILE`, `"fix": true`.

use super::arguments::OUTPUTS;
use super::tool_names::split_tool_name_into_words;

/// Words of options, and of arguments that are switched on, that ask for a change.
const ASKS_FOR_CHANGE: &[&str] = &[
    "apply",
    "autofix",
    "bless",
    "fix",
    "fixes",
    "inplace",
    "overwrite",
    "write",
];

/// Such options that consist of two words.
const TWO_WORD_CHANGES: &[&str] = &[
    "inplace",
    "snapshotupdate",
    "updatesnapshot",
    "updatesnapshots",
];

/// Words that turn such an option into one that changes nothing.
const ASKS_FOR_NONE: &[&str] = &["check", "diff", "dry", "no", "not", "preview", "without"];

/// The effect of an option on the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OptionEffectOnFiles {
    /// It changes the files that it names.
    ChangesFiles,
    /// It only checks what it would change.
    OnlyChecks,
    /// It writes a result to this path.
    WritesResultTo(String),
}

/// Reads options one after the other.
#[derive(Debug, Default)]
pub(super) struct FileOptionScanner {
    /// The last option takes a path for a result, which comes next.
    result_follows: bool,
}

impl FileOptionScanner {
    /// Returns the effects of these options.
    pub(super) fn file_effects_of_options(&mut self, text: &str) -> Vec<OptionEffectOnFiles> {
        let mut said = Vec::new();
        for word in text.split_whitespace() {
            // The state outlives one text, because options and their values may be separate items
            // of a list.
            let is_result = std::mem::take(&mut self.result_follows);
            let Some(option) = word.strip_prefix('-') else {
                said.extend(
                    is_result.then(|| OptionEffectOnFiles::WritesResultTo(word.to_owned())),
                );
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            let words = split_tool_name_into_words(name);
            said.extend(fix_or_check_only_by_option_name(&words));
            if words.iter().any(|word| is_output_option(word)) {
                said.extend(
                    value.map(|value| OptionEffectOnFiles::WritesResultTo(value.to_owned())),
                );
                self.result_follows = value.is_none();
            }
        }
        said
    }
}

/// Returns the effect of an option, or of an argument that is `true`, with these words.
pub(super) fn fix_or_check_only_by_option_name(words: &[String]) -> Option<OptionEffectOnFiles> {
    let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let asks = any(ASKS_FOR_CHANGE) || TWO_WORD_CHANGES.contains(&words.concat().as_str());
    match any(ASKS_FOR_NONE) {
        // `--no-fix` asks for nothing at all, while `--check` and `--dry-run` promise to change
        // nothing.
        true => (!any(&["no", "not", "without"])).then_some(OptionEffectOnFiles::OnlyChecks),
        false => asks.then_some(OptionEffectOnFiles::ChangesFiles),
    }
}

fn is_output_option(word: &str) -> bool {
    matches!(word, "junit" | "junitxml" | "o" | "report")
        || OUTPUTS.contains(&word) && word != "write"
}
