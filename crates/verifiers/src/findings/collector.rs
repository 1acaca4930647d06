//! Collects findings by identity: each once, bounded, and the same fifty in whatever order they
//! came.

use std::collections::BTreeMap;

use checkrein_core::evidence::{Finding, FindingStatusAgainstBaseline, MAX_FINDINGS};

use super::identity;

/// Distinct findings that are held; further ones are only counted.
const HELD: usize = 5_000;

/// What a parser understood of one or several lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputFindingDraft {
    /// Test id, if it is a test.
    pub(crate) test: Option<String>,
    /// Path relative to the root.
    pub(crate) file: Option<String>,
    /// Line, from 1.
    pub(crate) line: Option<u32>,
    /// The tool's code for it.
    pub(crate) rule: Option<String>,
    /// What the tool says.
    pub(crate) message: String,
}

#[derive(Debug, Default)]
pub(crate) struct CheckFindingCollector {
    by_identity: BTreeMap<(String, Option<String>), (usize, OutputFindingDraft)>,
    not_held: u32,
}

impl CheckFindingCollector {
    /// Adds a draft. Of several with the same identity the first is kept.
    pub(crate) fn add_output_finding_draft(&mut self, mut draft: OutputFindingDraft) {
        draft.message = identity::one_line(&draft.message);
        let id = match (&draft.test, &draft.rule) {
            (Some(test), _) => identity::finding_id_from_test(test),
            (None, Some(rule)) => format!(
                "{rule}: {}",
                identity::message_as_finding_id(&draft.message)
            ),
            (None, None) => identity::message_as_finding_id(&draft.message),
        };
        // Neither line nor message is part of the key: both change when the code around the problem
        // does.
        let key = (id, draft.file.clone());
        let order = self.by_identity.len();
        if self.by_identity.contains_key(&key) {
            return;
        }
        // What is counted here may include duplicates: knowing that would mean holding them.
        if order >= HELD {
            self.not_held = self.not_held.saturating_add(1);
            return;
        }
        self.by_identity.insert(key, (order, draft));
    }

    /// Returns the first fifty by identity, in the order in which they came, and the total.
    ///
    /// Cut by identity and not by order: tests that run in parallel report in any order, and
    /// the failure set of one and the same tree must be one and the same (law 4).
    pub(crate) fn finish_gathered_findings(self) -> (Vec<Finding>, u32) {
        let total = u32::try_from(self.by_identity.len()).unwrap_or(u32::MAX);
        let mut kept: Vec<(usize, Finding)> = self
            .by_identity
            .into_iter()
            .take(MAX_FINDINGS)
            .map(|((id, file), (order, draft))| {
                let OutputFindingDraft {
                    test,
                    line,
                    rule,
                    message,
                    ..
                } = draft;
                let rule = rule.or(test);
                (
                    order,
                    Finding {
                        id,
                        file,
                        line,
                        rule,
                        message,
                        state: FindingStatusAgainstBaseline::New,
                    },
                )
            })
            .collect();
        kept.sort_by_key(|(order, _)| *order);
        let findings = kept.into_iter().map(|(_, finding)| finding).collect();
        (findings, total.saturating_add(self.not_held))
    }
}
