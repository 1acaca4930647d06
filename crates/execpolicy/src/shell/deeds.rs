//! What a command does, beside what the rules say of its words: its effects are found and judged, and what
//! they run is taken up.

use checkrein_core::input::RuleDecision;

use super::dirs::Dirs;
use super::feed::Feed;
use super::word::Word;
use super::{Command, Judge, Kind, MOST_FILES, fetched, patches};
use crate::effects::judge::{self as sight, Judged, Scene};
use crate::effects::means::Hole;
use crate::effects::place::Place;
use crate::effects::{self, Deed, Effect, code};
use crate::own;
use crate::rules::basename;

/// What is known of a command beside its words.
#[derive(Default)]
pub(super) struct Facts {
    /// Why a person would be asked because of what it does.
    pub(super) asks: Option<String>,
    /// Why a person is asked whatever allows it.
    pub(super) hazard: Option<&'static str>,
    /// Whether code in it could be read.
    pub(super) readable: bool,
}

impl Judge<'_> {
    /// Judges effects, and takes up what they run.
    pub(super) fn effects(
        &mut self,
        effects: &[Effect],
        dirs: &Dirs,
        hole: Option<&Hole>,
        contained: bool,
    ) -> Judged {
        let rules = self.verdict.rules();
        let scene = Scene {
            ground: &self.ground,
            names: &self.names,
            dirs,
            hole,
            contained,
        };
        let judged = sight::judge(effects, &scene, rules.bounds(), &self.links);
        if let Some((decision, why)) = &judged.protected {
            self.verdict.refuse(*decision, why.clone());
        }
        if let Some(what) = &judged.destroys {
            self.verdict.destroys(what);
        }
        self.guarded(&judged);
        for spot in &judged.written {
            self.verdict.touched(&sight::shown(spot), false);
        }
        for spot in &judged.removed {
            self.verdict.touched(&sight::shown(spot), true);
        }
        if self.links.len() < MOST_FILES {
            self.links.extend_from_slice(&judged.links);
        }
        judged
    }

    /// What decides whether anybody is judged is left as it is, whatever the rules say.
    fn guarded(&mut self, judged: &Judged) {
        let protected = self.verdict.rules().protected();
        let written = judged.written.iter().chain(&judged.perhaps_written);
        let written = written.map(|spot| (spot, own::Change::Written));
        let removed = judged
            .removed
            .iter()
            .map(|spot| (spot, own::Change::Removed));
        let filled = judged.unseen.iter();
        // A folder that is copied or linked to a place brings what is in it.
        let copied = judged.copied.iter();
        let copied = copied.filter(|(from, to)| from.name() == to.name());
        let linked = judged.links.iter();
        let put = copied.map(|(_, to)| to).chain(linked.map(|(to, _)| to));
        let put = put.filter(|spot| !matches!(self.ground.place(spot), Place::Scratch { .. }));
        let filled = filled.chain(put).map(|spot| (spot, own::Change::Filled));
        for (spot, change) in written.chain(removed).chain(filled) {
            if let Some(why) = own::changed(spot, change, &self.ground, protected) {
                self.verdict.refuse(RuleDecision::Forbidden, why);
            }
        }
    }

    /// What is known of a command beside its words.
    pub(super) fn facts(&mut self, command: &Command, words: &[Word], program: &str) -> Facts {
        let name = basename(program);
        // Its own commands are judged where they stand; it may also not be what is meant here.
        let own = self.functions.contains(program) || self.aliases.contains_key(program);
        if own && !effects::is_known(program) {
            return Facts {
                readable: true,
                ..Facts::default()
            };
        }
        let brought = matches!(command.kind, Kind::Brought | Kind::Inside);
        let mut effects = effects::of(program, words, brought);
        // Without quotes, what is empty is no word at all.
        if words.iter().any(Word::is_wide_open) {
            let rest = words.iter().filter(|word| !word.is_wide_open());
            let rest: Vec<Word> = rest.cloned().collect();
            effects.extend(effects::of(program, &rest, brought));
        }
        match command.kind {
            Kind::Plain => {}
            Kind::Brought | Kind::Inside => drop_named_deeds(&mut effects, words),
            Kind::Elsewhere | Kind::Contained => {
                effects.retain(|effect| *effect != Effect::Deed(Deed::Stops))
            }
        }
        let fed: Vec<_> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Fed(language) => Some(*language),
                _ => None,
            })
            .collect();
        for language in fed {
            fed_code(language, &command.feed, &mut effects);
        }
        // The patch stands in the script.
        if let (Feed::Text { text, sure: true }, "patch" | "gpatch" | "git") = (&command.feed, name)
            && effects.iter().any(Effect::is_patch)
        {
            // These are what it changes, not whatever lies there.
            effects.retain(|effect| !effect.is_patch());
            effects.extend(
                patches::headed(text)
                    .map(|path| Effect::File(effects::Act::Write, Word::fixed(path))),
            );
        }
        let text = match (&command.feed, words) {
            (Feed::Text { text, sure: true }, [_] | [_, _] | [_, _, _]) => Some(text.to_string()),
            (_, [_, word]) => word.as_fixed().map(str::to_owned),
            _ => None,
        };
        if let (Some(text), "apply_patch" | "applypatch" | "checkrein") = (text, name)
            && effects.iter().any(Effect::is_patch)
            && text.contains("*** Begin Patch")
        {
            effects.retain(|effect| !effect.is_patch());
            let paths = own::patched(&text).map(Word::fixed);
            effects.extend(paths.map(|path| Effect::File(effects::Act::Write, path)));
        }
        let removes = |effect: &Effect| matches!(effect, Effect::File(effects::Act::Remove, _));
        if command.kind == Kind::Inside {
            // The project's own files may be there.
            if effects.iter().any(removes) {
                effects.push(Effect::Deed(Deed::Destroys));
            }
            effects.retain(|effect| {
                !matches!(
                    effect,
                    Effect::File(..) | Effect::PutInto(..) | Effect::Link(..) | Effect::RunsFile(_)
                )
            });
        }
        let readable = !effects.contains(&Effect::Deed(Deed::Code));
        let contained = command.kind == Kind::Contained;
        let hole = command.hole.as_deref();
        let mut judged = self.effects(&effects, &command.dirs, hole, contained);
        let takes = effects
            .iter()
            .any(|effect| matches!(effect, Effect::Fed(_)));
        self.made.takes |= takes;
        let fetched = fetched::is_fetcher(name) || command.feed == Feed::Fetched;
        let fed = matches!(
            command.feed,
            Feed::Unknown | Feed::Fetched | Feed::Text { .. }
        );
        self.made.command(name, &mut judged, (fed, fetched));
        if matches!(name, "env" | "genv") {
            for word in words.iter().skip(1).filter(|word| word.is_assignment()) {
                if let Some((name, _)) = word.text.split_once('=') {
                    self.assigned(name, word.after('=').as_ref(), command.depth, &command.dirs);
                }
            }
        }
        for run in judged.runs {
            self.run(
                run,
                &command.feed,
                command.depth + 1,
                (&command.dirs, command.kind),
                command.hole.clone(),
            );
        }
        Facts {
            asks: judged.asks,
            hazard: judged.hazard,
            readable,
        }
    }

    /// Words that may not be a command count for what nobody means, and for what judges the work, as
    /// for rules that forbid.
    pub(super) fn guessed(&mut self, command: &Command, words: &[Word], program: &str) {
        if command.kind == Kind::Inside {
            return;
        }
        let bounds = self.verdict.rules().bounds();
        let scene = Scene {
            ground: &self.ground,
            names: &self.names,
            dirs: &command.dirs,
            hole: command.hole.as_deref(),
            contained: command.kind == Kind::Contained,
        };
        let mut effects = effects::of(program, words, true);
        drop_named_deeds(&mut effects, words);
        let judged = sight::judge(&effects, &scene, bounds, &self.links);
        if let Some(what) = &judged.destroys {
            self.verdict.destroys(what);
        }
        self.guarded(&judged);
    }
}

/// What a tool of the project is given may name a test, a target or a container's own program
/// (`cargo test shutdown`), and nothing of this machine is stopped. A disk is meant where one is named.
fn drop_named_deeds(effects: &mut Vec<Effect>, words: &[Word]) {
    let names_device = words.iter().any(|word| word.text.contains("/dev/"));
    effects.retain(|effect| match effect {
        Effect::Deed(Deed::Stops) => false,
        Effect::Deed(Deed::Wipes) => names_device,
        _ => true,
    });
}

/// Code on standard input.
fn fed_code(language: effects::Language, feed: &Feed, effects: &mut Vec<Effect>) {
    use effects::Language::{Other, Redis, Sent, Shell, Sql, Sqlite};
    match feed {
        // Found by the grammar.
        _ if language == Shell => {}
        Feed::Open | Feed::Nothing if language == Other => {}
        Feed::Open | Feed::Text { sure: true, .. } if language == Sent => {}
        _ if language == Sent => effects.push(Effect::Deed(Deed::Uploads)),
        Feed::Text { text, sure: true } => code::read(language, text, effects),
        // A file, or nothing at all: for a database that is not known.
        Feed::Open | Feed::Nothing if matches!(language, Sql | Sqlite | Redis) => {
            effects.push(Effect::Deed(Deed::Unclear))
        }
        Feed::Open | Feed::Nothing => effects.push(Effect::Deed(Deed::Opaque)),
        Feed::Text { .. } | Feed::Paths(_) | Feed::Unknown | Feed::Fetched => {
            effects.push(Effect::Deed(Deed::Code))
        }
    }
}
