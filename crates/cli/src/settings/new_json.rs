//! Writes JSON with keys in our order, on one line, with or without blanks as the file around it
//! has them.

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderedJson {
    Text(String),
    Number(u64),
    List(Vec<OrderedJson>),
    Object(Vec<(&'static str, OrderedJson)>),
}

impl OrderedJson {
    pub(crate) fn new_json_string(text: impl Into<String>) -> Self {
        OrderedJson::Text(text.into())
    }

    /// Renders the value on one line. `airy` puts blanks between its parts.
    pub(super) fn render_json_on_one_line(&self, airy: bool) -> String {
        let comma = if airy { ", " } else { "," };
        match self {
            OrderedJson::Text(text) => quote_as_json_string(text),
            OrderedJson::Number(number) => number.to_string(),
            OrderedJson::List(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| item.render_json_on_one_line(airy))
                    .collect();
                format!("[{}]", items.join(comma))
            }
            OrderedJson::Object(fields) => {
                let colon = if airy { ": " } else { ":" };
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| {
                        format!(
                            "{}{colon}{}",
                            quote_as_json_string(key),
                            value.render_json_on_one_line(airy)
                        )
                    })
                    .collect();
                let pad = if airy { " " } else { "" };
                format!("{{{pad}{}{pad}}}", fields.join(comma))
            }
        }
    }
}

pub(super) fn quote_as_json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
