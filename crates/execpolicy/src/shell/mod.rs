//! Shell commands against the rules: a script is parsed by a real grammar and every
//! command that it can run is judged, wherever it stands. What cannot be read is
//! recorded and, if any rule restricts, asked about; it is never allowed.

mod deeds;
mod dirs;
mod feed;
mod fetched;
mod lexical;
mod made;
mod mask;
mod options;
mod outside;
mod parsed;
mod patches;
mod pieces;
mod prints;
mod quote;
mod sums;
mod tree;
mod unfold;
mod verdict;
mod word;
mod wrappers;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use checkrein_core::input::ToolRequestFacts;

use crate::effects::judge::Run;
use crate::effects::means::{GIVEN, Hole, Names};
use crate::effects::place::{Ground, Spot, UNKNOWN};
use crate::effects::{self, Effect, variables};
use crate::own;
use crate::policy::{Bounds, Unmatched};
use crate::rules::{RuleSet, basename};
use deeds::Facts;
pub(crate) use dirs::Dir;
use dirs::Dirs;
pub use dirs::StartFolders;
pub(crate) use feed::Feed;
use made::Made;
pub use parsed::ParsedScripts;
pub use patches::{PatchCommand, PatchText, PatchTool, patches_in, patches_of_words};
pub(crate) use unfold::{Inner, unfold};
use verdict::{Asks, Verdict};
pub use verdict::{Touched, Touches};
pub(crate) use word::{Known, Word, read as read_word};

/// Bytes of a script that is parsed; a longer one is only scanned.
const MAX_SCRIPT: usize = 1 << 20;
/// Bytes of all scripts inside scripts.
const MAX_BYTES: usize = 2 << 20;
/// Scripts and wrappers inside one another.
const MAX_DEPTH: u16 = 24;
/// Commands of one request that are unfolded; the rest is only scanned.
const MAX_COMMANDS: usize = 200_000;
/// Files that are kept in mind.
const MOST_FILES: usize = 256;
/// Calls of functions whose words are kept together.
const MOST_GIVEN: usize = 16;
/// Words of a command of unsure shape that are each tried as a command.
const MAX_TRIED: usize = 64;

/// Judges every command that a shell script can run.
///
/// The overall rule is `Allow` only if every command has an allow rule of its own and
/// nothing is unresolved; with a prompt or forbidden rule loaded, anything unresolved
/// makes it at least `Prompt`.
pub fn judge_script(rules: &RuleSet, script: &str) -> ToolRequestFacts {
    judge_parsed_script(
        &ParsedScripts::default(),
        rules,
        script,
        &StartFolders::top(),
    )
    .0
}

/// Judges a command that an agent gives as words, without a shell; what it runs in turn
/// (`bash -lc TEXT`, `env`, ...) included.
pub fn judge_argv<S: AsRef<str>>(rules: &RuleSet, argv: &[S]) -> ToolRequestFacts {
    judge_parsed_argv(&ParsedScripts::default(), rules, argv, &StartFolders::top()).0
}

/// The same for a script that is asked about more than once, with what it touches: where that
/// really lies is for who can read files to say.
pub fn judge_parsed_script(
    scripts: &ParsedScripts,
    rules: &RuleSet,
    script: &str,
    start: &StartFolders,
) -> (ToolRequestFacts, Touches) {
    let mut judge = Judge::new(rules);
    judge.scripts = scripts.clone();
    judge.script(script, Feed::Open, 0, &start.0, Kind::Plain);
    judge.finish_touching()
}

/// The same for words.
pub fn judge_parsed_argv<S: AsRef<str>>(
    scripts: &ParsedScripts,
    rules: &RuleSet,
    argv: &[S],
    start: &StartFolders,
) -> (ToolRequestFacts, Touches) {
    let mut judge = Judge::new(rules);
    judge.scripts = scripts.clone();
    judge.words(argv, start);
    judge.finish_touching()
}

/// Judges a tool call that writes these files: the rules that no config switches off.
pub fn judge_writes(rules: &RuleSet, paths: &[String]) -> ToolRequestFacts {
    let written = |path: &String| Touched {
        path: path.clone(),
        removed: false,
    };
    let touched: Vec<Touched> = paths.iter().map(written).collect();
    judge_changes(rules, &touched)
}

/// The same for files that are written or removed.
pub fn judge_changes(rules: &RuleSet, changes: &[Touched]) -> ToolRequestFacts {
    let mut judge = Judge::new(rules);
    for change in changes {
        judge.change(change);
    }
    judge.finish()
}

/// Judges files by where they really lie: the rules that no config switches off, and what is
/// protected. Whether they lie in the project is no question: it was answered by their names.
pub fn judge_places(rules: &RuleSet, places: &[Touched]) -> ToolRequestFacts {
    let bounds = Bounds {
        unmatched: Unmatched::Allow,
        ..rules.bounds().clone()
    };
    let rules = RuleSet::default()
        .protecting(rules.protected().to_vec())
        .bounded(bounds);
    let mut judge = Judge::new(&rules);
    for place in places {
        judge.change(place);
    }
    judge.finish()
}

/// A command to judge.
struct Command {
    words: Rc<[Word]>,
    /// Its first word: wrappers share the rest with what they run.
    from: usize,
    feed: Feed,
    depth: u16,
    /// Whether it is one. If not, it only counts if a rule restricts it.
    sure: bool,
    dirs: Dirs,
    hole: Option<Rc<Hole>>,
    kind: Kind,
}

/// Who brings the program of a command, and where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// The machine.
    Plain,
    /// The project, or a registry.
    Brought,
    /// A container: files are its own.
    Inside,
    /// A script in a container: the system is its own, and which files are shared is not known.
    Contained,
    /// Another machine: what stops it stops no work here.
    Elsewhere,
}

struct Judge<'r> {
    verdict: Verdict<'r>,
    scripts: ParsedScripts,
    pending: VecDeque<Command>,
    aliases: HashMap<String, String>,
    bytes: usize,
    commands: usize,
    /// Scripts read already, each with what it was fed: a shell that is fed itself would
    /// double with every level.
    read: HashSet<(String, Feed, Kind)>,
    ground: Ground,
    names: Names,
    functions: HashSet<String>,
    /// What functions and scripts are given, all words of one call together.
    given: Vec<Vec<Word>>,
    /// Texts that would run as sums, and whether anything reads sums.
    traps: Vec<String>,
    sums: bool,
    links: Vec<(Spot, Spot)>,
    made: Made,
    /// Judged last: a link that a command makes leads elsewhere. With each, whether it stands in a
    /// script that a container runs.
    redirected: Vec<(tree::Redirected, bool)>,
}

impl<'r> Judge<'r> {
    fn new(rules: &'r RuleSet) -> Self {
        Self {
            verdict: Verdict::new(rules),
            scripts: ParsedScripts::default(),
            pending: VecDeque::new(),
            aliases: HashMap::new(),
            bytes: 0,
            commands: 0,
            read: HashSet::new(),
            ground: Ground::new(&rules.bounds().roots),
            names: Names::default(),
            functions: HashSet::new(),
            given: Vec::new(),
            traps: Vec::new(),
            sums: false,
            links: Vec::new(),
            made: Made::default(),
            redirected: Vec::new(),
        }
    }

    fn words<S: AsRef<str>>(&mut self, argv: &[S], start: &StartFolders) {
        let words: Vec<Word> = argv.iter().map(|word| Word::fixed(word.as_ref())).collect();
        self.push(Command {
            words: words.into(),
            from: 0,
            feed: Feed::Open,
            depth: 0,
            sure: true,
            dirs: start.0.clone(),
            hole: None,
            kind: Kind::Plain,
        });
    }

    fn change(&mut self, Touched { path, removed }: &Touched) {
        let act = match removed {
            true => effects::Act::Remove,
            false => effects::Act::Write,
        };
        let effects = [Effect::File(act, Word::fixed(path.as_str()))];
        self.asked(&effects, &StartFolders::top().0);
    }

    fn finish(self) -> ToolRequestFacts {
        self.finish_touching().0
    }

    fn finish_touching(mut self) -> (ToolRequestFacts, Touches) {
        while let Some(command) = self.pending.pop_front() {
            self.command(&command);
        }
        if self.names.is_spent() {
            self.verdict.unresolved("more than can be followed");
        }
        if self.sums {
            for trap in std::mem::take(&mut self.traps) {
                self.unreadable(&trap);
            }
        }
        for (redirected, contained) in std::mem::take(&mut self.redirected) {
            self.redirected(&redirected, contained);
        }
        self.made.follow();
        if self.asks_about_hazards()
            && let Some(path) = self.made.fetched_at_once()
        {
            let why = format!("policy asks: {path}: this {}", fetched::HAZARD);
            self.verdict.asks(why);
        }
        if self.by_effect()
            && let Some(path) = self.made.at_once(self.names.is_set("PATH"))
        {
            let why = format!("policy asks: {path} is written and run at once");
            self.verdict.asks(why);
        }
        self.verdict.finish()
    }

    fn by_effect(&self) -> bool {
        self.verdict.rules().bounds().unmatched == Unmatched::ByEffect
    }

    fn asks_about_hazards(&self) -> bool {
        self.verdict.rules().bounds().hazard_asks
    }

    fn push(&mut self, command: Command) {
        self.pending.push_back(command);
    }

    fn unreadable(&mut self, piece: &str) {
        self.verdict.unresolved(piece);
        self.verdict.scan(piece);
    }

    fn script(&mut self, text: &str, feed: Feed, depth: u16, dirs: &Dirs, kind: Kind) {
        // Breadth first: what was read before was read at a lesser depth.
        if depth > 0 && !self.read.insert((text.to_owned(), feed.clone(), kind)) {
            return;
        }
        self.bytes = self.bytes.saturating_add(text.len());
        if text.len() > MAX_SCRIPT || self.bytes > MAX_BYTES || depth > MAX_DEPTH {
            self.unreadable(text);
            return;
        }
        let script = tree::read(&self.scripts, text, &feed, dirs);
        if script.broken {
            self.unreadable(text);
        }
        for path in own::patched(text) {
            let effects = [Effect::File(effects::Act::Write, Word::fixed(path))];
            self.asked(&effects, dirs);
        }
        if !script.broken && script.doubtful.is_empty() {
            return self.take_up(script, depth, dirs, kind);
        }
        let read = script.commands.iter().cloned();
        let read = read.map(|found| (found.words.clone(), found)).collect();
        self.take_up(script, depth, dirs, kind);
        self.pieces(text, &read, &feed, depth, (dirs, kind));
    }

    /// Takes up what was read of a script.
    fn take_up(&mut self, script: tree::Script, depth: u16, dirs: &Dirs, kind: Kind) {
        self.functions.extend(script.functions);
        self.traps.extend(script.traps);
        self.sums |= script.sums;
        for (name, value) in &script.assigned {
            self.assigned(name, value.as_ref(), depth, dirs);
        }
        for found in &script.commands {
            let given = self.given(&found.words).to_vec();
            for word in &given {
                self.names.set(GIVEN, Some(word.clone()));
            }
            let dashes = given
                .iter()
                .take_while(|word| word.as_fixed() == Some("--"));
            let words = given.get(dashes.count()..).unwrap_or(&[]);
            // One that begins with what is given would be made of itself.
            let named = words.first().is_some_and(|word| word.known == Known::Fixed);
            if named && self.given.len() < MOST_GIVEN {
                self.given.push(words.to_vec());
            }
        }
        let contained = kind == Kind::Contained;
        let redirected = script.redirected.into_iter();
        self.redirected
            .extend(redirected.map(|redirected| (redirected, contained)));
        for piece in &script.doubtful {
            self.unreadable(piece);
        }
        for found in script.commands {
            self.push(Command {
                words: found.words.into(),
                from: 0,
                feed: found.feed,
                depth,
                sure: true,
                dirs: found.dirs,
                hole: None,
                // A script is read as it stands, whoever brings it.
                kind: match kind {
                    Kind::Brought => Kind::Plain,
                    kind => kind,
                },
            });
        }
    }

    /// Takes up a script that the grammar cannot be trusted with, piece by piece: what it reads of
    /// them holds, and what it does not read of one hides none of the others. `known`: what it
    /// made of the whole.
    fn pieces(
        &mut self,
        text: &str,
        known: &HashMap<Vec<Word>, tree::Found>,
        feed: &Feed,
        depth: u16,
        (dirs, kind): (&Dirs, Kind),
    ) {
        let mut dirs = dirs.clone();
        let mut fetches = false;
        for piece in pieces::of(text) {
            let whole = piece.text();
            self.bytes = self.bytes.saturating_add(whole.len());
            if self.bytes > MAX_BYTES {
                return;
            }
            let mut read = vec![tree::read(&self.scripts, &whole, feed, &dirs)];
            let members: Vec<pieces::Member> = match read.first().is_some_and(|read| read.broken) {
                true => piece.members,
                false => Vec::new(),
            };
            for (at, member) in members.iter().enumerate() {
                let feed = match (at, fetches) {
                    (0, _) => feed.clone(),
                    (_, true) => Feed::Fetched,
                    (_, false) => Feed::Unknown,
                };
                let script = tree::read(&self.scripts, &member.text(), &feed, &dirs);
                read.push(match script.broken {
                    true => self.by_words(member, feed, depth, &dirs, kind),
                    false => script,
                });
            }
            for mut script in read.into_iter().filter(|script| !script.broken) {
                let mut words = script.commands.iter().map(|found| &found.words);
                fetches |= words.any(|words| fetched::calls_fetcher(words));
                let is_new = |found: &tree::Found| known.get(&found.words) != Some(found);
                script.commands.retain(is_new);
                let ends_in = script.ends_in.take();
                self.take_up(script, depth, &dirs, kind);
                dirs = ends_in.unwrap_or(dirs);
            }
        }
    }

    /// A command that the grammar cannot read even alone, by the rules of quoting.
    fn by_words(
        &mut self,
        member: &pieces::Member,
        feed: Feed,
        depth: u16,
        dirs: &Dirs,
        kind: Kind,
    ) -> tree::Script {
        for text in member.substitutions() {
            self.script(text, Feed::Nothing, depth + 1, dirs, kind);
        }
        let (words, written) = member.words();
        tree::Script::of_words(words, written, feed, dirs)
    }

    /// What a function that is called in these words, or the script itself, is given.
    fn given<'w>(&self, words: &'w [Word]) -> &'w [Word] {
        let calls = |word: &Word| {
            word.as_fixed()
                .is_some_and(|name| name == "set" || self.functions.contains(name))
        };
        let at = words
            .iter()
            .position(calls)
            .map_or(words.len(), |at| at + 1);
        words.get(at..).unwrap_or(&[])
    }

    fn redirected(&mut self, redirected: &tree::Redirected, contained: bool) {
        // `>&2` and `2>&1` name no file.
        let digits = |text: &str| {
            text == "-" || !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
        };
        if redirected.path.as_fixed().is_some_and(digits)
            || redirected.path.text.starts_with(['<', '>'])
        {
            return;
        }
        let act = match redirected.written {
            true if redirected.appended => effects::Act::Write,
            true => effects::Act::Replace,
            false => effects::Act::Read,
        };
        let mut effects = vec![Effect::File(act, redirected.path.clone())];
        // Something reads its program from its input.
        if self.made.takes && !redirected.written {
            effects.push(Effect::Starts(redirected.path.clone()));
        }
        self.asked_of(&effects, &redirected.dirs, redirected.fetched, contained);
    }

    /// Effects of no command that a rule could name.
    fn asked(&mut self, effects: &[Effect], dirs: &Dirs) {
        self.asked_of(effects, dirs, false, false);
    }

    /// The same; `fetched`: what is written comes from the network; `contained`: a container does it.
    fn asked_of(&mut self, effects: &[Effect], dirs: &Dirs, fetched: bool, contained: bool) {
        let judged = self.effects(effects, dirs, None, contained);
        self.made.written(&judged, fetched);
        if self.by_effect()
            && let Some(why) = judged.asks
        {
            self.verdict.asks(format!("policy asks: this {why}"));
        }
    }

    fn assigned(&mut self, name: &str, value: Option<&Word>, depth: u16, dirs: &Dirs) {
        self.names.set(name, value.cloned());
        // `RM=$(which rm)`
        if let Some([word]) = value
            .and_then(|value| prints::words_of(&value.text))
            .as_deref()
        {
            self.names.set(name, Some(word.clone()));
        }
        match variables::set(name, value) {
            Some(variables::Sets::Runs(run)) => {
                self.run(run, &Feed::Nothing, depth + 1, (dirs, Kind::Plain), None)
            }
            Some(variables::Sets::Asks(why)) if self.by_effect() => {
                self.verdict
                    .asks(format!("policy asks: setting {name} {why}"));
            }
            Some(variables::Sets::Asks(_)) | None => {}
        }
    }

    /// Takes up what an effect runs.
    fn run(
        &mut self,
        run: Run,
        feed: &Feed,
        depth: u16,
        (dirs, kind): (&Dirs, Kind),
        hole: Option<Rc<Hole>>,
    ) {
        let (words, kind) = match run {
            Run::Script(word) => {
                if word.known != Known::Fixed {
                    self.verdict.unresolved(&word.text);
                }
                return self.script(&word.text, feed.clone(), depth, dirs, kind);
            }
            // Read with the command that it is fed to.
            Run::Fed(_) => return,
            Run::Command(words) if kind == Kind::Brought => (words, Kind::Plain),
            Run::Command(words) => (words, kind),
            Run::Tool(words) if kind == Kind::Plain => (words, Kind::Brought),
            Run::Tool(words) => (words, kind),
            Run::Inside(words) => (words, Kind::Inside),
        };
        self.push(Command {
            words: words.into(),
            from: 0,
            feed: feed.clone(),
            depth,
            sure: true,
            dirs: dirs.clone(),
            hole,
            kind,
        });
    }

    /// The words as the shell will make them, as far as that can be told.
    fn settled<'w>(&self, words: &'w [Word], hole: Option<&Hole>) -> Cow<'w, [Word]> {
        if words.iter().all(|word| word.known == Known::Fixed) {
            return Cow::Borrowed(words);
        }
        let settled = words.iter().flat_map(|word| {
            let exact = self.names.settled(word, hole);
            exact.unwrap_or_else(|| vec![word.clone()])
        });
        Cow::Owned(settled.collect())
    }

    fn command(&mut self, command: &Command) {
        let words = command.words.get(command.from..).unwrap_or(&[]);
        let Some(first) = words.first() else { return };
        self.commands += 1;
        if self.commands > MAX_COMMANDS || command.depth > MAX_DEPTH {
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            self.unreadable(&texts.join(" "));
            return;
        }
        let Some(program) = first.as_program() else {
            if command.sure {
                self.verdict.unresolved(&first.text);
                self.verdict.nameless(words);
                if self.asks_about_hazards() && fetched::is_fetched(&first.text, &self.names) {
                    self.verdict.hazard(words, fetched::HAZARD);
                }
                self.named_by_constants(command, words);
            }
            // An unquoted expansion may be empty, and the next word the command.
            if first.known == Known::Many && command.sure {
                self.any_from(command, 1);
            }
            return;
        };
        let settled = self.settled(words, command.hole.as_deref());
        let facts = match command.sure {
            true => self.facts(command, &settled, program),
            false => Facts::default(),
        };
        if !command.sure {
            self.guessed(command, &settled, program);
        }
        let inner = unfold::unfold(basename(program), words, &command.feed);
        let asks = Asks {
            effects: facts.asks.as_deref(),
            hazard: facts.hazard.or_else(|| self.fetched(command, &inner)),
        };
        self.verdict.command(words, program, command.sure, asks);
        self.alias(command, words, program);
        self.unfold(command, words, inner, facts.readable);
        // What rules say of the words as they stand holds; this can only add to it.
        if let Cow::Owned(settled) = settled
            && settled != words
        {
            let words: Rc<[Word]> = settled.into();
            let command = Command {
                words: Rc::clone(&words),
                from: 0,
                feed: command.feed.clone(),
                depth: command.depth,
                sure: command.sure,
                dirs: command.dirs.clone(),
                hole: command.hole.clone(),
                kind: command.kind,
            };
            let program = words.first().and_then(Word::as_program).unwrap_or("");
            let inner = unfold::unfold(basename(program), &words, &command.feed);
            if let Some(why) = self.fetched(&command, &inner) {
                self.verdict.hazard(&words, why);
            }
            self.unfold(&command, &words, inner, facts.readable);
        }
    }

    /// A command whose name is a constant of this very script (`X=rm; $X -rf /`) is judged by it as
    /// well; that it cannot be read beforehand stays true.
    fn named_by_constants(&mut self, command: &Command, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        if self.commands + self.pending.len() > MAX_COMMANDS {
            return;
        }
        let constants = self.names.constants(first);
        let mut begins: Vec<Vec<Word>> = constants
            .iter()
            .map(|name| name.split_whitespace().map(Word::fixed).collect())
            .collect();
        // `{rm,-rf,x}` and a list are several words.
        let list = first.text.contains("[@]") || first.text.contains("[*]");
        if list || first.text.contains('{') && first.text.contains(',') {
            begins.push(constants.iter().map(Word::fixed).collect());
        }
        begins.extend(prints::words_of(&first.text));
        if matches!(first.text.as_str(), "$@" | "${@}" | "$*" | "${*}") {
            begins.extend(self.given.iter().cloned());
        }
        for own in begins {
            let words: Vec<Word> = own.into_iter().chain(rest.iter().cloned()).collect();
            let named = words.first().and_then(Word::as_program);
            // What names itself is no constant.
            if named.is_none_or(|named| named.contains(['$', '`'])) {
                continue;
            }
            self.push(Command {
                words: words.into(),
                from: 0,
                feed: command.feed.clone(),
                depth: command.depth + 1,
                sure: true,
                dirs: command.dirs.clone(),
                hole: command.hole.clone(),
                kind: command.kind,
            });
        }
    }

    /// Why a person is asked about code that a command runs, if it comes from the network.
    fn fetched(&self, command: &Command, inner: &[Inner]) -> Option<&'static str> {
        // `curl ... | xargs sh -c`
        let added = |text: &str| command.feed == Feed::Fetched && matches!(text, "" | "{}" | "%");
        let fetched = |inner: &Inner| match inner {
            Inner::Fetched(_) => true,
            Inner::Unreadable(text) if added(text) => true,
            Inner::Code(text) | Inner::Unreadable(text) => fetched::is_fetched(text, &self.names),
            Inner::Script { text, sure: false } => added(text),
            _ => false,
        };
        let asks = command.sure && self.asks_about_hazards();
        (asks && inner.iter().any(fetched)).then_some(fetched::HAZARD)
    }

    fn unfold(&mut self, command: &Command, words: &[Word], inner: Vec<Inner>, readable: bool) {
        let mut hole = None;
        let program = words.first().and_then(Word::as_program).unwrap_or("");
        let moved;
        let command = match unfold::started_in(basename(program), words) {
            None => command,
            Some(folder) => {
                let dirs = command.dirs.iter().map(|dir| dirs::step(dir, &folder));
                moved = Command {
                    words: Rc::clone(&command.words),
                    feed: command.feed.clone(),
                    dirs: dirs.collect(),
                    hole: command.hole.clone(),
                    ..*command
                };
                &moved
            }
        };
        for inner in inner {
            match inner {
                Inner::Code(_) if readable && self.by_effect() => {}
                Inner::Code(piece) => self.inner(command, words, Inner::Unreadable(piece)),
                Inner::Command(inner) => {
                    let hole =
                        hole.get_or_insert_with(|| hole_of(words, &command.feed).map(Rc::new));
                    self.push(Command {
                        words: inner.into(),
                        from: 0,
                        feed: command.feed.clone(),
                        depth: command.depth + 1,
                        sure: command.sure,
                        dirs: command.dirs.clone(),
                        hole: hole.clone(),
                        kind: command.kind,
                    });
                }
                inner => self.inner(command, words, inner),
            }
        }
    }

    fn alias(&mut self, command: &Command, words: &[Word], program: &str) {
        // Removed while in use, as the shell does: `alias ls='ls -l'` is no loop.
        let Some(text) = self.aliases.remove(program) else {
            return;
        };
        if let Some(value) = shlex::split(&text).filter(|value| !value.is_empty()) {
            let value = value.into_iter().map(Word::fixed);
            let words: Vec<Word> = value.chain(words.iter().skip(1).cloned()).collect();
            self.push(Command {
                words: words.into(),
                from: 0,
                feed: command.feed.clone(),
                depth: command.depth + 1,
                sure: command.sure,
                dirs: command.dirs.clone(),
                hole: command.hole.clone(),
                kind: command.kind,
            });
        }
        self.aliases.insert(program.to_owned(), text);
    }

    fn inner(&mut self, command: &Command, words: &[Word], inner: Inner) {
        let depth = command.depth + 1;
        match inner {
            Inner::From(at) => self.push(Command {
                words: Rc::clone(&command.words),
                from: command.from + at,
                feed: command.feed.clone(),
                depth,
                sure: command.sure,
                dirs: command.dirs.clone(),
                hole: command.hole.clone(),
                kind: command.kind,
            }),
            // Pushed where its placeholder is worked out, once for all.
            Inner::Command(_) => {}
            Inner::Given(given) => {
                for word in given {
                    let filled = self.names.filled(&word, command.hole.as_deref());
                    for word in filled {
                        self.names.set(GIVEN, word);
                    }
                }
            }
            Inner::Script { text, sure } => {
                if !sure {
                    self.verdict.unresolved(&text);
                }
                let kind = match command.kind {
                    Kind::Inside => Kind::Contained,
                    Kind::Plain if unfold::runs_elsewhere(words) => Kind::Elsewhere,
                    kind => kind,
                };
                self.script(&text, command.feed.clone(), depth, &command.dirs, kind);
            }
            Inner::AnyFrom(at) => {
                let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                // A guess about a guess adds nothing: its words are being tried already.
                if command.sure {
                    self.verdict.unresolved(&texts.join(" "));
                    self.any_from(command, at);
                }
            }
            Inner::Code(piece) | Inner::Unreadable(piece) | Inner::Fetched(piece) => {
                if command.sure {
                    self.verdict.unresolved(&piece);
                }
            }
            Inner::Typed => {
                if command.sure {
                    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                    self.verdict.typed_at(&texts.join(" "));
                }
            }
            Inner::Alias(name, text) => {
                self.script(&text, Feed::Nothing, depth, &command.dirs, command.kind);
                self.aliases.insert(name, text);
            }
        }
    }

    /// Tries every suffix of the words as a command.
    fn any_from(&mut self, command: &Command, at: usize) {
        for from in (command.from + at..command.words.len()).take(MAX_TRIED) {
            self.push(Command {
                words: Rc::clone(&command.words),
                from,
                feed: command.feed.clone(),
                depth: command.depth + 1,
                sure: false,
                dirs: command.dirs.clone(),
                hole: None,
                kind: command.kind,
            });
        }
        for from in (command.from + at..command.words.len()).skip(MAX_TRIED) {
            let words = command.words.get(from..).unwrap_or(&[]);
            if let Some(program) = words.first().and_then(Word::as_program) {
                self.verdict.command(words, program, false, Asks::default());
            }
        }
    }
}

/// What stands for unknown words in the command that these words run.
fn hole_of(words: &[Word], feed: &Feed) -> Option<Hole> {
    let (placeholder, mut values) = placeholder_of(words, feed)?;
    if values.len() > MOST_FILES {
        values = vec![Word::open(UNKNOWN, Known::One)];
    }
    Some((placeholder, values))
}

fn placeholder_of(words: &[Word], feed: &Feed) -> Option<Hole> {
    let name = words.first().and_then(Word::as_fixed).map(basename)?;
    match name {
        "find" | "gfind" => Some(("{}".to_owned(), effects::found_by(words))),
        "fd" | "fdfind" => Some(("{}".to_owned(), effects::names_printed(words)?)),
        "xargs" | "gxargs" => {
            let placeholder = unfold::xargs_placeholder(words);
            match feed {
                Feed::Paths(paths) => Some((placeholder.unwrap_or_default(), paths.to_vec())),
                Feed::Text { text, sure: true } => {
                    let lines = text.lines().map(Word::fixed).collect();
                    Some((placeholder?, lines))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
