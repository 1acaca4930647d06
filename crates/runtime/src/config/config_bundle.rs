//! Holds a config with the rules and schema files that it names. Each is read once, so that what is
//! digested, approved and kept is what is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use checkrein_core::digest::Digest;
use checkrein_verifiers::judge::{AgentInstructionsFile, RULE_FILE_NAMES};
use globset::GlobMatcher;
use serde::{Deserialize, Serialize};

use super::config_document::ParsedConfigDocument;
use super::config_file::{DeserializedConfigFile, VerifierConfigTable};
use super::config_keys::ConfigFileKind;
use super::policy_bounds;
use super::{ConfigError, NamedConfigText};
use crate::durable_file;

/// The largest file of rules for agents that is read for a judge.
const MAX_AGENT_RULES_BYTES: u64 = 1024 * 1024;

/// How many bytes of such a file a judge is shown.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// A config's text and those of the files it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigWithNamedFiles {
    /// The config.
    pub config: NamedConfigText,
    /// Every file that a pattern of `policy.rules` matches, including patterns in profiles, in
    /// order of their names.
    pub rules: Vec<NamedConfigText>,
    /// Every existing file that a `schema` or `rubric` of a verifier names, including those in
    /// profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<NamedConfigText>,
    /// The project's rules for agents, if a judge needs them. Nobody has to approve them: they run
    /// nothing, and agents may edit them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<NamedConfigText>,
}

impl ConfigWithNamedFiles {
    /// A config that names no files.
    pub fn config_naming_no_files(config: NamedConfigText) -> Self {
        Self {
            config,
            rules: Vec::new(),
            schemas: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// Reads the rules and schema files that a config names.
    ///
    /// # Errors
    /// If the config has a mistake, or a file that it names cannot be read. A schema file that is
    /// not there is no error here: what needs it can never pass.
    pub fn gather_files_named_by_config(config: NamedConfigText) -> Result<Self, ConfigError> {
        Self::read_files_named_by_config(config, ConfigFileKind::Config)
    }

    /// The same for a person's own config.
    ///
    /// # Errors
    /// As [`Self::gather_files_named_by_config`], and if it has a key that only the repo's can have.
    pub fn gather_files_of_personal_config(config: NamedConfigText) -> Result<Self, ConfigError> {
        Self::read_files_named_by_config(config, ConfigFileKind::OwnConfig)
    }

    fn read_files_named_by_config(
        config: NamedConfigText,
        keys: ConfigFileKind,
    ) -> Result<Self, ConfigError> {
        let document = ParsedConfigDocument::parse_config_document(&config, keys)?;
        let parts = document.split_config_and_profiles()?;
        let folder = config_file_folder(&config);
        let mut paths = Vec::new();
        for pattern in rules_file_globs(&parts) {
            let found = files_matching_glob(folder, pattern).map_err(|error| {
                document.config_value_mistake("policy.rules", error.to_string())
            })?;
            paths.extend(found);
        }
        // Several patterns may match one file.
        paths.sort();
        paths.dedup();
        let read = |path: PathBuf| {
            let wrong = |why: String| ConfigError::RulesFile {
                name: path.clone(),
                what: format!("cannot be read: {why}"),
            };
            match durable_file::read_limited_text_file(&path, durable_file::MAX_CONFIG_BYTES) {
                Ok(Some(text)) => Ok(NamedConfigText { name: path, text }),
                Ok(None) => Err(wrong("it is not there any more".to_owned())),
                Err(error) => Err(wrong(error.to_string())),
            }
        };
        let rules = paths.into_iter().map(read).collect::<Result<_, _>>()?;
        let mut schemas = Vec::new();
        for name in schema_and_rubric_file_names(&parts) {
            let path = join_path_below_folder(folder, name).ok_or_else(|| {
                document
                    .config_value_mistake("verifier.schema/rubric", not_below_folder_message(name))
            })?;
            let text = durable_file::read_limited_text_file(&path, durable_file::MAX_CONFIG_BYTES)
                .map_err(|source| ConfigError::Unreadable {
                    name: path.clone(),
                    source,
                })?;
            schemas.extend(text.map(|text| NamedConfigText { name: path, text }));
        }
        let mut agents = Vec::new();
        let judged =
            verifier_tables(&parts).any(|verifier| verifier.kind.as_deref() == Some("judge"));
        for name in RULE_FILE_NAMES.iter().filter(|_| judged) {
            let path = folder.join(name);
            // These need no approval, so a link in their place could show the judge any file.
            if path
                .symlink_metadata()
                .is_ok_and(|found| found.is_symlink())
            {
                continue;
            }
            // A file that cannot be read is not shown to the judge, and is no mistake of the
            // config.
            let text = durable_file::read_limited_text_file(&path, MAX_AGENT_RULES_BYTES)
                .unwrap_or_default();
            let cut = |mut text: String| {
                text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
                text
            };
            agents.extend(
                text.map(cut)
                    .map(|text| NamedConfigText { name: path, text }),
            );
        }
        Ok(Self {
            config,
            rules,
            schemas,
            agents,
        })
    }

    /// Parses the config, with the position of each key.
    pub(super) fn parse_config_document(&self) -> Result<ParsedConfigDocument, ConfigError> {
        ParsedConfigDocument::parse_config_document(&self.config, ConfigFileKind::Config)
    }

    /// The same for a person's own config.
    pub(super) fn parse_personal_config(&self) -> Result<ParsedConfigDocument, ConfigError> {
        ParsedConfigDocument::parse_config_document(&self.config, ConfigFileKind::OwnConfig)
    }

    /// Returns the rules for agents as a judge is shown them.
    pub(super) fn agent_rules_file_texts(&self) -> Vec<AgentInstructionsFile> {
        let rules = |source: &NamedConfigText| {
            let name = source.name.file_name()?.to_str()?.to_owned();
            let text = source.text.clone();
            Some(AgentInstructionsFile { name, text })
        };
        self.agents.iter().filter_map(rules).collect()
    }

    /// The files it names.
    pub fn rules_and_schema_files(&self) -> impl Iterator<Item = &NamedConfigText> {
        self.rules.iter().chain(&self.schemas)
    }

    /// Returns the existing files that commands of middleware and detectors name, including those in profiles.
    /// They are not read: what they do is their own business.
    pub fn middleware_programs(&self) -> Vec<PathBuf> {
        // This is asked for each call, few configs have middleware, and parsing takes a while.
        // Without a backslash no key can be spelled differently.
        let text = &self.config.text;
        if !["middleware", "detector", "\\"]
            .iter()
            .any(|word| text.contains(word))
        {
            return Vec::new();
        }
        // A config with a mistake is reported where it is compiled; here it names no programs.
        let Ok(parts) = self
            .parse_config_document()
            .and_then(|document| document.split_config_and_profiles())
        else {
            return Vec::new();
        };
        let layers = parts.iter().flat_map(|file| &file.middleware);
        let detectors = parts.iter().flat_map(|file| &file.detector);
        let commands = layers
            .map(|layer| &layer.run)
            .chain(detectors.map(|detector| &detector.run));
        let words = commands.flat_map(|run| run.split_whitespace());
        let words = words.map(|word| word.trim_matches(['\'', '"']));
        let folder = config_file_folder(&self.config);
        let files = words.filter_map(|word| {
            join_path_below_folder(folder, word.strip_prefix("./").unwrap_or(word))
        });
        let mut found: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns the text of the schema file with this name, if there was one.
    pub(super) fn schema_text(&self, name: &str) -> Option<&str> {
        let path = join_path_below_folder(config_file_folder(&self.config), name)?;
        let named = |source: &&NamedConfigText| source.name == path;
        self.schemas.iter().find(named).map(|source| &*source.text)
    }

    /// Names of its profiles.
    ///
    /// # Errors
    /// If the config has a mistake.
    pub fn config_profile_names(&self) -> Result<Vec<String>, ConfigError> {
        Ok(self.parse_config_document()?.config_profile_names())
    }

    /// Returns the digest of all bytes that say what runs and what may run, wherever the checkout
    /// lies.
    pub fn config_digest(&self) -> Digest {
        let folder = config_file_folder(&self.config);
        // Names are relative to the config, so that another checkout of the same files has the same
        // digest.
        let name = |source: &NamedConfigText| {
            let below = source.name.strip_prefix(folder).unwrap_or(&source.name);
            below.as_os_str().as_encoded_bytes().to_vec()
        };
        let mut parts = Vec::new();
        for source in std::iter::once(&self.config).chain(self.rules_and_schema_files()) {
            parts.push(name(source));
            parts.push(source.text.clone().into_bytes());
        }
        Digest::hash_parts(parts.iter().map(Vec::as_slice))
    }

    /// Returns the rules files that match the patterns of this reading of the config.
    pub(super) fn rules_files_matching_patterns(
        &self,
        document: &ParsedConfigDocument,
        file: &DeserializedConfigFile,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let folder = config_file_folder(&self.config);
        let mut found = Vec::new();
        for pattern in file.policy.rules.iter().flatten() {
            // The shipped policy has no file: it judges by what commands do.
            if pattern == policy_bounds::SHIPPED_POLICY {
                continue;
            }
            let glob = cached_glob_matcher(pattern).map_err(|error| {
                document.config_value_mistake("policy.rules", error.to_string())
            })?;
            let before = found.len();
            let meant = self.rules.iter().filter(|source| {
                let below = source.name.strip_prefix(folder);
                below.is_ok_and(|below| glob.is_match(below))
            });
            found.extend(
                meant.map(|source| (source.name.display().to_string(), source.text.clone())),
            );
            // A misspelt pattern would drop its rules silently.
            if found.len() == before {
                let what = format!(": nothing matches '{pattern}' in {}", folder.display());
                return Err(document.config_value_mistake("policy.rules", what));
            }
        }
        Ok(found)
    }
}

fn config_file_folder(config: &NamedConfigText) -> &Path {
    config.name.parent().unwrap_or(Path::new("."))
}

/// The patterns of the config and of all its profiles.
fn rules_file_globs(parts: &[DeserializedConfigFile]) -> impl Iterator<Item = &String> {
    let all = parts
        .iter()
        .flat_map(|file| file.policy.rules.iter().flatten());
    all.filter(|pattern| *pattern != policy_bounds::SHIPPED_POLICY)
}

/// The files named by the config and all its profiles, in order, each once.
fn schema_and_rubric_file_names(parts: &[DeserializedConfigFile]) -> BTreeSet<&str> {
    verifier_tables(parts)
        .flat_map(|verifier| [verifier.schema.as_deref(), verifier.rubric.as_deref()])
        .flatten()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

fn verifier_tables(parts: &[DeserializedConfigFile]) -> impl Iterator<Item = &VerifierConfigTable> {
    parts.iter().flat_map(|file| &file.verifier)
}

/// Returns the path of a file in the config's folder or below it, from its plain name.
fn join_path_below_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let mut parts = name.components();
    let plain = parts.all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| folder.join(name))
}

fn not_below_folder_message(name: &str) -> String {
    format!("cannot be '{name}'; name a file in the folder of this one, or below it, without ..")
}

/// Compiles each pattern once: a hook reads its config several times, and compiling a pattern takes
/// longer than the rest of it.
fn cached_glob_matcher(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    static MADE: Mutex<BTreeMap<String, GlobMatcher>> = Mutex::new(BTreeMap::new());
    // An entry is inserted whole, even if another thread panics.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made.get(pattern) {
        return Ok(known.clone());
    }
    let glob = globset::GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()?;
    let matcher = glob.compile_matcher();
    made.insert(pattern.to_owned(), matcher.clone());
    Ok(matcher)
}

/// Returns the files below `folder` that match, in order of their names.
fn files_matching_glob(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, globset::Error> {
    let glob = cached_glob_matcher(pattern)?;
    // The walk begins at the pattern's fixed part: a repo may be large.
    let fixed: PathBuf = Path::new(pattern)
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .take_while(|part| {
            let text = part.as_os_str().to_string_lossy();
            !text.contains(['*', '?', '[', '{', '\\'])
        })
        .collect();
    // Ignored folders are included, since rules may lie in one; eight levels are plenty for them.
    let walk = ignore::WalkBuilder::new(folder.join(fixed))
        .standard_filters(false)
        .max_depth(Some(8))
        .build();
    let mut found: Vec<PathBuf> = walk
        .flatten()
        // A link is read through; anything that is no file is a mistake to report.
        .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
        .map(ignore::DirEntry::into_path)
        .filter(|path| {
            path.strip_prefix(folder)
                .is_ok_and(|below| glob.is_match(below))
        })
        .collect();
    found.sort();
    Ok(found)
}
