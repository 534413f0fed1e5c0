//! Words of others inside of HTML: never markup, and nothing that XML does not allow.

/// For text and for attributes in double quotes.
pub(super) fn text(words: &str) -> String {
    let mut out = String::with_capacity(words.len() + 16);
    for letter in words.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            letter => out.push(letter),
        }
    }
    out
}

/// Paragraphs; an empty line is between two.
pub(super) fn paragraphs(words: &str) -> String {
    let paragraphs = words.split("\n\n").filter(|words| !words.trim().is_empty());
    paragraphs.map(|words| format!("<p>{}</p>\n", text(words.trim()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_markup() {
        assert_eq!(
            text("<a href=\"x\" b='y'>&\u{1b}"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\u{fffd}"
        );
        assert_eq!(paragraphs("a\n\n\n\nb"), "<p>a</p>\n<p>b</p>\n");
    }
}
