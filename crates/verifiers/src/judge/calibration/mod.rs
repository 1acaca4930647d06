//! How far a judge can be believed: what it says of answers beside what people say of them. Statistics
//! of a few lines each, with their sources; floats end here, no decision is made of them.

mod asking;
mod compare;
mod items;
mod kappa;
mod llmbar;
mod measure;
mod proportion;
mod record;
mod said;
mod standing;

pub use asking::{Asked, Asking, NotAsked};
pub use items::{File, Item, Labelled, Pair, Unfit, read};
pub use kappa::Kappa;
pub use measure::{InOrder, Judged, Pairs, Side, Silence, Verdicts};
pub use proportion::{Interval, Proportion};
pub use record::Record;
pub use said::{Recorded, RecordedChoice, Text};
pub use standing::{AGREEMENT, LABELS, Lack};

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Of one answer each.
    Verdicts(Verdicts),
    /// Of two answers each.
    Pairs(Pairs),
}

/// Lays what was said beside the labels. A score below `min_score`, in thousandths, does not pass;
/// who is not recorded to have said anything is unanswered.
pub fn measure(labelled: &Labelled, min_score: u32) -> Measured {
    match labelled {
        Labelled::Verdicts(items) => {
            let said = |item: &Item| {
                let reply = item.reply.as_ref();
                let said = reply.map_or(Err(Silence::Unanswered), |reply| reply.judged(min_score));
                ((item.passes, item.category), said)
            };
            let items: Vec<_> = items.iter().map(said).collect();
            Measured::Verdicts(Verdicts::of(&items))
        }
        Labelled::Pairs(pairs) => {
            let choice = |reply: &Option<RecordedChoice>| {
                let reply = reply.as_ref();
                reply.map_or(Err(Silence::Unanswered), RecordedChoice::choice)
            };
            let said = |pair: &Pair| (pair.better, pair.replies.each_ref().map(choice));
            let pairs: Vec<_> = pairs.iter().map(said).collect();
            Measured::Pairs(Pairs::of(&pairs))
        }
    }
}

impl Measured {
    /// What is not enough for its word to count; empty if nothing.
    pub fn lacks(&self) -> Vec<Lack> {
        match self {
            Self::Verdicts(verdicts) => standing::of_verdicts(verdicts),
            Self::Pairs(pairs) => standing::of_pairs(pairs),
        }
    }
}
