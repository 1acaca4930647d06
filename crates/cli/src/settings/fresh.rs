//! JSON that we write: keys in our order, on one line, airy or tight as the file around it is.

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fresh {
    Text(String),
    Number(u64),
    List(Vec<Fresh>),
    Object(Vec<(&'static str, Fresh)>),
}

impl Fresh {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Fresh::Text(text.into())
    }

    /// On one line.
    pub(super) fn line(&self, airy: bool) -> String {
        let comma = if airy { ", " } else { "," };
        match self {
            Fresh::Text(text) => quoted(text),
            Fresh::Number(number) => number.to_string(),
            Fresh::List(items) => {
                let items: Vec<String> = items.iter().map(|item| item.line(airy)).collect();
                format!("[{}]", items.join(comma))
            }
            Fresh::Object(fields) => {
                let colon = if airy { ": " } else { ":" };
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| format!("{}{colon}{}", quoted(key), value.line(airy)))
                    .collect();
                let pad = if airy { " " } else { "" };
                format!("{{{pad}{}{pad}}}", fields.join(comma))
            }
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
