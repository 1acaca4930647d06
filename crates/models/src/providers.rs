//! The table of model providers: wire format, base URL and key variables. Also parses names of the
//! form `provider/model`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::ModelError;
use crate::wires::{ProviderWireQuirks, WireFormat};

/// The environment given by the caller, as opposed to that of the process.
pub(crate) type EnvVarMap = BTreeMap<OsString, OsString>;

/// One provider.
#[derive(Debug)]
pub(crate) struct ModelProvider {
    /// The prefix of model names.
    pub(crate) name: &'static str,
    /// The name under which its key and prices are stored.
    pub(crate) account: &'static str,
    pub(crate) wire: WireFormat,
    pub(crate) dialect: ProviderWireQuirks,
    /// The base URL, unless a variable sets another.
    base: &'static str,
    base_variables: &'static [&'static str],
    pub(crate) key_variables: &'static [&'static str],
    /// It runs on the person's own machine, where most need no key.
    pub(crate) local: bool,
}

pub(crate) const STRICT: ProviderWireQuirks = ProviderWireQuirks {
    enforces_schemas: true,
    requests_usage: true,
    returns_thoughts: false,
    max_tokens: "max_tokens",
};
/// Accepts no schema, or none together with a stream or tools.
const LOOSE: ProviderWireQuirks = ProviderWireQuirks {
    enforces_schemas: false,
    ..STRICT
};
const MISTRAL: ProviderWireQuirks = ProviderWireQuirks {
    requests_usage: false,
    ..STRICT
};
const DEEPSEEK: ProviderWireQuirks = ProviderWireQuirks {
    returns_thoughts: true,
    ..LOOSE
};
const OPENAI: ProviderWireQuirks = ProviderWireQuirks {
    max_tokens: "max_completion_tokens",
    ..STRICT
};

const fn chat_completions_provider(
    name: &'static str,
    dialect: ProviderWireQuirks,
    base: &'static str,
    base_variables: &'static [&'static str],
    key_variables: &'static [&'static str],
) -> ModelProvider {
    ModelProvider {
        name,
        account: name,
        wire: WireFormat::Chat,
        dialect,
        base,
        base_variables,
        key_variables,
        local: false,
    }
}

/// All providers.
pub(crate) const PROVIDERS: &[ModelProvider] = &[
    ModelProvider {
        wire: WireFormat::Anthropic,
        ..chat_completions_provider(
            "anthropic",
            STRICT,
            "https://api.anthropic.com",
            &["ANTHROPIC_BASE_URL"],
            &["ANTHROPIC_API_KEY"],
        )
    },
    ModelProvider {
        wire: WireFormat::Responses,
        ..chat_completions_provider(
            "openai",
            OPENAI,
            "https://api.openai.com/v1",
            &["OPENAI_BASE_URL"],
            &["OPENAI_API_KEY"],
        )
    },
    ModelProvider {
        account: "openai",
        ..chat_completions_provider(
            "openai-chat",
            OPENAI,
            "https://api.openai.com/v1",
            &["OPENAI_BASE_URL"],
            &["OPENAI_API_KEY"],
        )
    },
    ModelProvider {
        wire: WireFormat::Gemini,
        ..chat_completions_provider(
            "gemini",
            STRICT,
            GEMINI,
            &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    ModelProvider {
        wire: WireFormat::Gemini,
        account: "gemini",
        ..chat_completions_provider(
            "google",
            STRICT,
            GEMINI,
            &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    ModelProvider {
        local: true,
        ..chat_completions_provider(
            "ollama",
            STRICT,
            "http://127.0.0.1:11434/v1",
            &[OLLAMA_HOST],
            &["OLLAMA_API_KEY"],
        )
    },
    ModelProvider {
        local: true,
        ..chat_completions_provider(
            "vllm",
            STRICT,
            "http://127.0.0.1:8000/v1",
            &["VLLM_BASE_URL"],
            &["VLLM_API_KEY"],
        )
    },
    ModelProvider {
        local: true,
        ..chat_completions_provider(
            "lmstudio",
            STRICT,
            "http://127.0.0.1:1234/v1",
            &["LMSTUDIO_BASE_URL"],
            &["LMSTUDIO_API_KEY"],
        )
    },
    chat_completions_provider(
        "openrouter",
        STRICT,
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_BASE_URL"],
        &["OPENROUTER_API_KEY"],
    ),
    chat_completions_provider(
        "groq",
        LOOSE,
        "https://api.groq.com/openai/v1",
        &["GROQ_BASE_URL"],
        &["GROQ_API_KEY"],
    ),
    chat_completions_provider(
        "deepseek",
        DEEPSEEK,
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_BASE_URL"],
        &["DEEPSEEK_API_KEY"],
    ),
    chat_completions_provider(
        "mistral",
        MISTRAL,
        "https://api.mistral.ai/v1",
        &["MISTRAL_BASE_URL"],
        &["MISTRAL_API_KEY"],
    ),
    chat_completions_provider(
        "xai",
        STRICT,
        "https://api.x.ai/v1",
        &["XAI_BASE_URL"],
        &["XAI_API_KEY"],
    ),
    chat_completions_provider(
        "together",
        STRICT,
        "https://api.together.xyz/v1",
        &["TOGETHER_BASE_URL"],
        &["TOGETHER_API_KEY"],
    ),
    chat_completions_provider(
        "fireworks",
        STRICT,
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_BASE_URL"],
        &["FIREWORKS_API_KEY"],
    ),
    chat_completions_provider(
        "cerebras",
        LOOSE,
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_BASE_URL"],
        &["CEREBRAS_API_KEY"],
    ),
];

const GEMINI: &str = "https://generativelanguage.googleapis.com";
/// Holds an address and not a URL: where the server listens, without the path of this wire.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// Prefixes of model names, to suggest a provider for a name without one.
const FAMILIES: &[(&str, &str)] = &[
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gemini"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("ministral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("llama", "ollama"),
    ("qwen", "ollama"),
    ("gemma", "ollama"),
];

/// Longer than any model's name.
const LONGEST: usize = 200;

/// Returns the provider named by the prefix, and the provider's own name of the model.
pub(crate) fn parse_model_name(name: &str) -> Result<(&'static ModelProvider, &str), ModelError> {
    let wrong = |why: String| {
        Err(ModelError::InvalidName {
            name: name.chars().take(LONGEST).collect(),
            why,
        })
    };
    let Some((first, model)) = name.split_once('/') else {
        let lower = name.to_ascii_lowercase();
        // A bare name is never guessed: the key would be sent to a provider that the person did not
        // name. The guess goes into the message.
        let family = FAMILIES.iter().find(|(begin, _)| lower.starts_with(begin));
        return wrong(match (find_provider(name), family) {
            (Some(provider), _) => format!("it names no model; write {}/MODEL", provider.name),
            (None, Some((_, provider))) if !name.is_empty() => {
                format!("it names no provider; did you mean '{provider}/{name}'?")
            }
            _ => format!("write PROVIDER/MODEL; providers are {}", provider_names()),
        });
    };
    let Some(provider) = find_provider(first) else {
        let lower = first.to_ascii_lowercase();
        let near = PROVIDERS
            .iter()
            .map(|provider| (strsim::jaro_winkler(&lower, provider.name), provider.name))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            // Below this likeness a suggestion would be a random provider.
            .filter(|(likeness, _)| *likeness > 0.8);
        return wrong(match near {
            Some((_, near)) => {
                format!("there is no provider '{first}'; did you mean '{near}/{model}'?")
            }
            None => format!(
                "there is no provider '{first}'; providers are {}",
                provider_names()
            ),
        });
    };
    // Everything after the first slash is the model's name, which may contain slashes itself, as at
    // OpenRouter.
    if model.is_empty() {
        return wrong(format!("it names no model; write {first}/MODEL"));
    }
    // Gemini puts the model's name into the URL path, so it must not climb out of it or end it.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:@+".contains(c);
    let climbs = model.split('/').any(|part| matches!(part, "" | "." | ".."));
    if model.len() > LONGEST || climbs || !model.chars().all(plain) {
        return wrong("no model is called so".to_owned());
    }
    Ok((provider, model))
}

fn find_provider(name: &str) -> Option<&'static ModelProvider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// Returns the name under which a provider's keys and prices are stored.
pub(crate) fn provider_key_storage_name(name: &str) -> &str {
    find_provider(name).map_or(name, |provider| provider.account)
}

fn provider_names() -> String {
    let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
    names.join(", ")
}

impl ModelProvider {
    /// Returns the base URL, without a trailing slash.
    pub(crate) fn base_url(&self, environment: &EnvVarMap) -> Result<String, ModelError> {
        let Some((variable, value)) = first_set_variable(environment, self.base_variables) else {
            return Ok(self.base.to_owned());
        };
        let base = if variable == OLLAMA_HOST {
            base_url_from_ollama_host(&value)
        } else {
            value.trim_end_matches('/').to_owned()
        };
        if reqwest::Url::parse(&base)
            // The endpoint's path is appended, so a query would swallow it.
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.query().is_none())
        {
            return Ok(base);
        }
        // The value is not shown, because it may contain a password.
        Err(ModelError::InvalidName {
            name: self.name.to_owned(),
            why: format!("{variable} is no http or https URL"),
        })
    }

    /// Returns the key from the provider's variables.
    pub(crate) fn api_key_from_environment(&self, environment: &EnvVarMap) -> Option<String> {
        first_set_variable(environment, self.key_variables).map(|(_, value)| value)
    }
}

/// Returns the first of these variables that is set and not blank.
pub(crate) fn first_set_variable(
    environment: &EnvVarMap,
    variables: &[&'static str],
) -> Option<(&'static str, String)> {
    variables.iter().find_map(|variable| {
        let value = environment.get(std::ffi::OsStr::new(variable))?.to_str()?;
        let value = value.trim();
        (!value.is_empty()).then(|| (*variable, value.to_owned()))
    })
}

/// Folders of programs that come with the system.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the environment without variables that set where models are reached, for callers that
/// cannot tell whether a stranger set them. Keys would otherwise be sent there.
pub fn without_endpoint_variables(environment: &EnvVarMap) -> EnvVarMap {
    const ROUTES: [&str; 6] = [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "ssl_cert_file",
        "ssl_cert_dir",
    ];
    let bases = PROVIDERS
        .iter()
        .flat_map(|provider| provider.base_variables);
    let bases: Vec<&str> = bases.copied().collect();
    let says_where = |name: &std::ffi::OsStr| {
        let name = name.to_string_lossy();
        bases.contains(&&*name) || ROUTES.contains(&&*name.to_lowercase())
    };
    let mut kept = environment.clone();
    kept.retain(|name, _| !says_where(name));
    // The keyring's program is found through `PATH`, so that must not be a stranger's either.
    kept.insert("PATH".into(), SYSTEM_PATH.into());
    kept
}

/// Parses `OLLAMA_HOST` as Ollama does: scheme and port may be missing, and an address to listen on
/// everywhere means this machine.
fn base_url_from_ollama_host(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix("/v1").unwrap_or(rest);
    let (address, path) = match rest.split_once('/') {
        Some((address, path)) => (address, format!("/{path}")),
        None => (rest, String::new()),
    };
    let port = |after: &str| after.parse::<u16>().is_ok();
    let (name, port) = match address.rsplit_once(':') {
        Some((name, after)) if port(after) && (!name.contains(':') || name.ends_with(']')) => {
            (name, after)
        }
        // With a scheme, Ollama uses the scheme's own port. Without one, its default.
        _ if host.contains("://") && scheme == "https" => (address, "443"),
        _ if host.contains("://") => (address, "80"),
        _ => (address, "11434"),
    };
    let name = match name {
        // A server can listen on every address, but a client needs one to connect to.
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        other => other,
    };
    format!("{scheme}://{name}:{port}{path}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_told_the_right_one() {
        for (name, expected) in [
            ("gpt-5", "'openai/gpt-5'"),
            ("claude-opus-5", "'anthropic/claude-opus-5'"),
            ("antropic/claude-opus-5", "'anthropic/claude-opus-5'"),
            ("Open-AI/gpt-5", "'openai/gpt-5'"),
            ("openai", "openai/MODEL"),
            ("openai/", "openai/MODEL"),
            ("", "providers are anthropic"),
            ("zzz/m", "providers are anthropic"),
            ("gemini/../../x", "no model is called so"),
            ("gemini/a?key=1", "no model is called so"),
        ] {
            let error = parse_model_name(name).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
        let (provider, model) =
            parse_model_name("openrouter/anthropic/claude-opus-5:free").unwrap();
        assert_eq!(
            (provider.name, model),
            ("openrouter", "anthropic/claude-opus-5:free")
        );
    }

    #[test]
    fn variables_say_where_a_provider_is() {
        let base = |name: &str, variable: &str, value: &str| {
            let environment = EnvVarMap::from([(variable.into(), value.into())]);
            find_provider(name).unwrap().base_url(&environment)
        };
        assert_eq!(
            base("openai", "X", "").unwrap(),
            "https://api.openai.com/v1"
        );
        assert_eq!(
            base("openai-chat", "OPENAI_BASE_URL", " http://h:1/v1/ ").unwrap(),
            "http://h:1/v1"
        );
        for (host, expected) in [
            ("10.0.0.7", "http://10.0.0.7:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:9000", "http://127.0.0.1:9000/v1"),
            (":9000", "http://127.0.0.1:9000/v1"),
            ("[::]:9000", "http://[::1]:9000/v1"),
            ("https://ollama.com", "https://ollama.com:443/v1"),
            ("http://box/", "http://box:80/v1"),
            ("http://box:9/v1", "http://box:9/v1"),
            ("http://box:9/up", "http://box:9/up/v1"),
        ] {
            assert_eq!(
                base("ollama", OLLAMA_HOST, host).unwrap(),
                expected,
                "{host}"
            );
        }
        let error = base("anthropic", "ANTHROPIC_BASE_URL", "ftp://u:secret@h").unwrap_err();
        assert!(error.to_string().contains("ANTHROPIC_BASE_URL"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn names_are_told_apart() {
        for (at, provider) in PROVIDERS.iter().enumerate() {
            let (_, rest) = PROVIDERS.split_at(at + 1);
            assert!(rest.iter().all(|other| other.name != provider.name));
            assert!(
                find_provider(provider.account).is_some(),
                "{}",
                provider.account
            );
        }
    }
}
