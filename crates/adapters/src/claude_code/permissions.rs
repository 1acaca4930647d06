//! Reads the `permissions` of Claude Code's settings: rules on tools, each `Tool` or
//! `Tool(specifier)`. Claude Code applies deny rules before ask rules, and ask rules before allow
//! rules.

use serde_json::Value;

/// The list that a rule stands in: what is done about a call that it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionListKind {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

impl PermissionListKind {
    /// Returns the key of the list in the settings.
    pub fn permission_list_key(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    /// The list that it stands in.
    pub list: PermissionListKind,
    /// The rule as it is written.
    pub text: String,
    /// The tool's name.
    pub tool: String,
    /// The text in its parentheses.
    pub specifier: Option<String>,
}

/// Returns the rules of a settings file, deny rules first. Claude Code skips what it does not
/// understand; a reader that takes rules over must not lose one that way, so this reports an error
/// instead.
///
/// # Errors
/// If it is no JSON object, or its permissions are none, with their place.
pub fn read_permission_rules(bytes: &[u8]) -> Result<Vec<PermissionRule>, String> {
    // Claude Code accepts a byte order mark, `serde_json` does not.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let settings: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let settings = settings.as_object().ok_or("not a JSON object")?;
    let permissions = match settings.get("permissions") {
        None => None,
        Some(Value::Object(permissions)) => Some(permissions),
        Some(_) => return Err("`permissions` is not an object".to_owned()),
    };
    let mut found = Vec::new();
    for list in [
        PermissionListKind::Deny,
        PermissionListKind::Ask,
        PermissionListKind::Allow,
    ] {
        let key = list.permission_list_key();
        let rules = match permissions.and_then(|permissions| permissions.get(key)) {
            None => continue,
            Some(Value::Array(rules)) => rules,
            Some(_) => return Err(format!("`permissions.{key}` is not a list")),
        };
        for (at, rule) in rules.iter().enumerate() {
            let text = rule
                .as_str()
                .ok_or_else(|| format!("`permissions.{key}[{at}]` is not a text"))?;
            found.push(parse_claude_permission(list, text));
        }
    }
    Ok(found)
}

fn parse_claude_permission(list: PermissionListKind, text: &str) -> PermissionRule {
    let inner = text
        .split_once('(')
        // Without the closing bracket the text is kept whole as the tool's name: the caller shows
        // it as a rule that it cannot translate.
        .and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)));
    let (tool, specifier) = match inner {
        Some((tool, inner)) => (tool, Some(inner.to_owned())),
        None => (text, None),
    };
    PermissionRule {
        list,
        text: text.to_owned(),
        tool: tool.trim().to_owned(),
        specifier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_deny_first() {
        let text = r#"{"permissions":{"defaultMode":"plan","allow":["Bash(npm run test:*)","Read"],
            "deny":["Bash(rm (x))","mcp__db__drop"],"ask":["Edit(src/**)"]},"model":"x"}"#;
        let read = read_permission_rules(text.as_bytes()).unwrap();
        let seen: Vec<(&str, &str, Option<&str>)> = read
            .iter()
            .map(|one| {
                (
                    one.list.permission_list_key(),
                    one.tool.as_str(),
                    one.specifier.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("deny", "Bash", Some("rm (x)")),
                ("deny", "mcp__db__drop", None),
                ("ask", "Edit", Some("src/**")),
                ("allow", "Bash", Some("npm run test:*")),
                ("allow", "Read", None),
            ]
        );
        assert_eq!(read[0].text, "Bash(rm (x))");
    }

    #[test]
    fn what_is_no_settings() {
        for text in ["", "[]", "{", "null"] {
            assert!(read_permission_rules(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["{}", "\u{feff}{}", r#"{"permissions":{"deny":[]}}"#] {
            assert_eq!(
                read_permission_rules(text.as_bytes()),
                Ok(Vec::new()),
                "{text}"
            );
        }
        for (text, place) in [
            (r#"{"permissions":[]}"#, "`permissions` is not an object"),
            (r#"{"permissions":null}"#, "`permissions` is not an object"),
            (
                r#"{"permissions":{"deny":"Bash"}}"#,
                "`permissions.deny` is not a list",
            ),
            (
                r#"{"permissions":{"ask":["Read",7]}}"#,
                "`permissions.ask[1]` is not a text",
            ),
        ] {
            assert_eq!(
                read_permission_rules(text.as_bytes()),
                Err(place.to_owned()),
                "{text}"
            );
        }
    }
}
