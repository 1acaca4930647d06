//! Records questions and answers: one JSON object per line, written as it comes, so that nothing
//! that was paid for is lost and the same question is not asked twice.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Mutex;

use checkrein_core::digest::Digest;
use checkrein_models::{ChatMessage, ModelRequest};
use serde::{Deserialize, Serialize};

use super::recorded_reply::UnparsedJudgeReply;
use crate::private_file::open_private_file;

/// Bytes of a record that are read.
const LONGEST: u64 = 1 << 30;

/// Answers by question, in a file or in memory only.
#[derive(Debug, Default)]
pub struct RecordedReplies {
    known: HashMap<String, UnparsedJudgeReply>,
    file: Option<Mutex<File>>,
}

#[derive(Serialize, Deserialize)]
struct RecordedJudgeReplyLine {
    /// Digest of model and request, its number aside.
    question: String,
    model: String,
    item: String,
    #[serde(rename = "ref")]
    number: u32,
    text: String,
}

impl RecordedReplies {
    /// Opens the record in this file, or creates it. A line that cannot be parsed is counted and
    /// skipped: it may be the last line of a run that was killed.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open_or_create_record_file(path: &Path) -> io::Result<(Self, usize)> {
        let mut file = open_private_file(path, File::options().read(true).append(true))?;
        let mut bytes = Vec::new();
        (&mut file).take(LONGEST).read_to_end(&mut bytes)?;
        // A run that was killed may have left half a line; without this the next record would be
        // appended to it.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n")?;
        }
        let (mut known, mut unread) = (HashMap::new(), 0);
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            // Of a question that was recorded twice the later answer counts.
            match serde_json::from_slice::<RecordedJudgeReplyLine>(line) {
                Ok(RecordedJudgeReplyLine {
                    question,
                    number,
                    text,
                    ..
                }) => drop(known.insert(question, UnparsedJudgeReply { text, number })),
                Err(_) => unread += 1,
            }
        }
        let file = Some(Mutex::new(file));
        Ok((Self { known, file }, unread))
    }

    pub(super) fn recorded_judge_reply(&self, question: &Digest) -> Option<UnparsedJudgeReply> {
        self.known.get(&question.to_hex()).cloned()
    }

    /// Appends an answer. It is a single write, so that lines of several threads do not mix.
    pub(super) fn record_judge_reply(
        &self,
        question: &Digest,
        model: &str,
        item: &str,
        said: &UnparsedJudgeReply,
    ) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut line = serde_json::to_string(&RecordedJudgeReplyLine {
            question: question.to_hex(),
            model: model.to_owned(),
            item: item.to_owned(),
            number: said.number,
            text: said.text.clone(),
        })?;
        line.push('\n');
        let mut file = file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// Returns the identity of a question: the model and the request, built with a constant quote
/// number.
pub(super) fn digest_of_model_and_request(model: &str, request: &ModelRequest) -> Digest {
    // Only user messages: a judge's request has no others.
    let said = request.messages.iter().filter_map(|message| match message {
        ChatMessage::User(text) => Some(text.as_bytes()),
        ChatMessage::Assistant { .. } | ChatMessage::ToolResult { .. } => None,
    });
    let parts = [model.as_bytes(), request.system.as_bytes()];
    Digest::hash_parts(parts.into_iter().chain(said))
}
