//! Words that stand for "no value", in labels and in columns.

/// Words that programs write for a missing value, in any letter case.
const WORDS: [&str; 6] = ["nan", "na", "n/a", "null", "<na>", "#n/a"];
/// The same, only as it is spelt: `none` is a class that people have.
const SPELT: [&str; 2] = ["None", "?"];

/// Whether a text stands for no value.
pub(crate) fn is_missing(text: &str) -> bool {
    let text = text.trim_ascii();
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) || SPELT.contains(&text)
}

/// The note on words that were taken for no value, where there were some: the words, and how often each stood there.
pub(crate) fn note(words: &[(String, usize)]) -> Option<String> {
    const SHOWN: usize = 5;
    let mut said: Vec<String> =
        words.iter().take(SHOWN).map(|(word, times)| format!("{word:?} ({times} times)")).collect();
    if words.len() > SHOWN {
        said.push(format!("{} more", words.len() - SHOWN));
    }
    (!said.is_empty()).then(|| format!("{} taken as not known", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_no_value_are_told_from_names() {
        for word in
            ["NA", "na", "N/A", "n/a", "NaN", "nan", "null", "NULL", "<NA>", "#N/A", "None", "?", " NA "]
        {
            assert!(is_missing(word), "{word:?}");
        }
        for name in ["none", "NONE", "unknown", "-", "0", "-1", "other", "Nan Goldin", "??", "missing"] {
            assert!(!is_missing(name), "{name:?}");
        }
    }

    #[test]
    fn a_note_names_words_and_how_often_they_stand() {
        assert_eq!(note(&[]), None);
        let words = [("NA".to_string(), 3), ("?".to_string(), 1)];
        assert_eq!(note(&words).unwrap(), "\"NA\" (3 times), \"?\" (1 times) taken as not known");
    }
}
