//! Parses files of LLMBar (Zeng et al. 2024, <https://github.com/princeton-nlp/LLMBar>): a list of
//! instructions with two outputs each and the better one; with `results` where an evaluator's
//! answers are recorded.

use serde::Deserialize;

use super::label_file::{JudgeLabelFile, LabelFileError, LabelledAnswerPair, LabelledAnswerSet};
use super::recorded_reply::RecordedPairChoice;
use super::statistics::{AnswerSide, NoJudgeVerdictReason};

#[derive(Deserialize)]
struct LlmBarInstance {
    input: String,
    output_1: String,
    output_2: String,
    label: u8,
    results: Option<Vec<serde_json::Value>>,
}

/// The last element of `results`; earlier ones are the evaluator's notes.
#[derive(Deserialize)]
struct LlmBarBothOrderChoices {
    #[serde(rename = "swap = False")]
    forth: LlmBarEvaluatorChoice,
    #[serde(rename = "swap = True")]
    back: LlmBarEvaluatorChoice,
}

/// `winner` names the output itself in both orders, and is null if none could be read.
#[derive(Deserialize)]
struct LlmBarEvaluatorChoice {
    winner: Option<String>,
}

pub(super) fn parse_llmbar(text: &str) -> Result<JudgeLabelFile, LabelFileError> {
    let wrong = |what: String| LabelFileError::Lines(vec![what]);
    let instances: Vec<LlmBarInstance> = serde_json::from_str(text)
        .map_err(|error| wrong(format!("a list, and not of LLMBar's shape: {error}")))?;
    if instances.is_empty() {
        return Err(LabelFileError::Empty);
    }
    let pairs: Result<Vec<LabelledAnswerPair>, String> = instances
        .into_iter()
        .enumerate()
        .map(|(at, one)| {
            labelled_pair_from_llmbar(at + 1, one)
                .map_err(|what| format!("instance {}: {what}", at + 1))
        })
        .collect();
    Ok(JudgeLabelFile {
        labelled: LabelledAnswerSet::Pairs(pairs.map_err(wrong)?),
        warnings: Vec::new(),
    })
}

fn labelled_pair_from_llmbar(
    number: usize,
    instance: LlmBarInstance,
) -> Result<LabelledAnswerPair, String> {
    let better = match instance.label {
        1 => AnswerSide::A,
        2 => AnswerSide::B,
        other => return Err(format!("'label' is {other}, and must be 1 or 2")),
    };
    let replies = match instance.results.map(|mut results| results.pop()) {
        None => [None, None],
        // Of several stages the last one holds the final choice.
        Some(last) => {
            let last: LlmBarBothOrderChoices = serde_json::from_value(last.unwrap_or_default())
                .map_err(|error| format!("'results': {error}"))?;
            [
                pair_choice_from_llmbar_winner(last.forth)?,
                pair_choice_from_llmbar_winner(last.back)?,
            ]
            .map(Some)
        }
    };
    Ok(LabelledAnswerPair {
        id: number.to_string(),
        request: instance.input,
        answers: [instance.output_1, instance.output_2],
        rules: None,
        better,
        replies,
    })
}

fn pair_choice_from_llmbar_winner(
    choice: LlmBarEvaluatorChoice,
) -> Result<RecordedPairChoice, String> {
    match choice.winner.as_deref() {
        Some("1") => Ok(RecordedPairChoice::Choice(AnswerSide::A)),
        Some("2") => Ok(RecordedPairChoice::Choice(AnswerSide::B)),
        // A null winner: the evaluator answered, but no choice could be read.
        None => Ok(RecordedPairChoice::NoChoice(
            NoJudgeVerdictReason::Unreadable,
        )),
        Some(other) => Err(format!("'winner' is '{other}', and must be '1' or '2'")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(results: Value) -> String {
        let mut one = json!({"input": "Count.", "output_1": "1", "output_2": "2", "label": 2});
        if !results.is_null() {
            one["results"] = results;
        }
        json!([one]).to_string()
    }

    fn only(text: &str) -> LabelledAnswerPair {
        match parse_llmbar(text).unwrap().labelled {
            LabelledAnswerSet::Pairs(mut pairs) => pairs.pop().unwrap(),
            LabelledAnswerSet::Verdicts(_) => unreachable!("two answers each"),
        }
    }

    #[test]
    fn a_data_set_with_answers_and_without() {
        let pair = only(&instance(Value::Null));
        assert_eq!((pair.better, pair.replies), (AnswerSide::B, [None, None]));
        // Notes first, then answers; of two stages the last counts.
        let answers = |forth: Value, back: Value| {
            json!({"swap = False": {"completion": ["x", "stop"], "winner": forth},
                "swap = True": {"completion": ["y", "stop"], "winner": back}})
        };
        let pair = only(&instance(json!([
            ["a note", "stop"],
            answers(json!("1"), json!("1")),
            answers(json!("2"), Value::Null),
        ])));
        let expected = [
            Some(RecordedPairChoice::Choice(AnswerSide::B)),
            Some(RecordedPairChoice::NoChoice(
                NoJudgeVerdictReason::Unreadable,
            )),
        ];
        assert_eq!(pair.replies, expected);
    }

    #[test]
    fn what_is_not_of_this_shape_is_told() {
        for (text, said) in [
            ("[]", "it holds no labels"),
            ("[3]", "not of LLMBar's shape"),
            (&*instance(json!([])), "instance 1: 'results'"),
            (
                &*instance(json!([["a note", "stop"]])),
                "instance 1: 'results'",
            ),
        ] {
            let error = parse_llmbar(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
