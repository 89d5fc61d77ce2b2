//! Ids of jobs where the two servers give different ones: which of ours stands for which of the C
//! server's. A case and its record speak of the C server's.

use std::collections::HashMap;

use crate::answer::Answer;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    ours: HashMap<u64, u64>,
    theirs: HashMap<u64, u64>,
}

impl Ids {
    /// Takes note of the ids that two answers give to the same new job, if they do.
    pub(crate) fn learn(&mut self, ours: &Answer, theirs: &Answer) {
        if let (Some(own), Some(id)) = (inserted(ours), inserted(theirs)) {
            self.ours.insert(id, own);
            self.theirs.insert(own, id);
        }
    }

    /// The line as ours is to be sent it.
    pub(crate) fn for_ours(&self, line: &[u8]) -> Vec<u8> {
        let verb = VERBS.iter().find(|verb| line.starts_with(verb));
        verb.map_or_else(
            || line.to_vec(),
            |verb| replace(line, verb.len(), &self.ours),
        )
    }

    /// Whether the line is about a job that was not there when this was last told of new ones.
    pub(crate) fn is_unknown(&self, line: &[u8]) -> bool {
        let verb = VERBS.iter().find(|verb| line.starts_with(verb));
        let id = verb.and_then(|verb| number(line, verb.len()));
        id.is_some_and(|(_, _, id)| !self.ours.contains_key(&id))
    }

    /// What ours has said, as the C server would have said it.
    pub(crate) fn as_theirs(&self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        let word = REPLIES.iter().find(|word| answer.line.starts_with(word));
        if let Some(word) = word {
            answer.line = replace(&answer.line, word.len(), &self.theirs);
        }
        let is_rows = answer.line.starts_with(b"OK ");
        if let Some(data) = answer.data.as_mut().filter(|_| is_rows)
            && data.starts_with(JOB_ROWS)
        {
            *data = replace(data, JOB_ROWS.len(), &self.theirs);
        }
        answer
    }
}

/// The id that a put was given.
fn inserted(answer: &Answer) -> Option<u64> {
    let line = std::str::from_utf8(&answer.line).ok()?;
    line.strip_prefix("INSERTED ")?.parse().ok()
}

/// The first number at or behind `at`, with nothing but blanks before: where it is, and what.
fn number(text: &[u8], at: usize) -> Option<(usize, usize, u64)> {
    let is_blank = |byte: &&u8| **byte == b' ';
    let start = at + text[at..].iter().take_while(is_blank).count();
    let digits = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let end = start + digits.count();
    let value = std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?;
    Some((start, end, value))
}

/// `text` with that number replaced, if it stands for another.
fn replace(text: &[u8], at: usize, by: &HashMap<u64, u64>) -> Vec<u8> {
    let found = number(text, at);
    let other = found.and_then(|(start, end, id)| Some((start, end, by.get(&id)?)));
    let Some((start, end, id)) = other else {
        return text.to_vec();
    };
    [&text[..start], id.to_string().as_bytes(), &text[end..]].concat()
}

const VERBS: &[&[u8]] = &[
    b"delete ",
    b"release ",
    b"bury ",
    b"touch ",
    b"peek ",
    b"kick-job ",
    b"reserve-job ",
    b"stats-job ",
];
const REPLIES: &[&[u8]] = &[b"INSERTED ", b"RESERVED ", b"FOUND ", b"BURIED "];
/// The beginning of the data that answers `stats-job`.
const JOB_ROWS: &[u8] = b"---\nid: ";

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str, data: Option<&str>) -> Answer {
        Answer {
            line: line.into(),
            data: data.map(Into::into),
        }
    }

    #[test]
    fn ids_are_replaced_both_ways_and_nothing_else_is() {
        let mut ids = Ids::default();
        ids.learn(&answer("INSERTED 1050", None), &answer("INSERTED 3", None));
        assert_eq!(ids.for_ours(b"release  003 3 3"), b"release  1050 3 3");
        assert_eq!(ids.for_ours(b"delete 4"), b"delete 4");
        assert_eq!(ids.for_ours(b"kick 3"), b"kick 3");
        assert!(ids.is_unknown(b"peek 4") && !ids.is_unknown(b"peek 3"));
        assert!(!ids.is_unknown(b"kick 4"));
        let said = answer("RESERVED 1050 4", Some("1050"));
        assert_eq!(ids.as_theirs(&said), answer("RESERVED 3 4", Some("1050")));
        let said = answer("OK 20", Some("---\nid: 1050\npri: 1050\n"));
        let rows = Some("---\nid: 3\npri: 1050\n");
        assert_eq!(ids.as_theirs(&said), answer("OK 20", rows));
    }
}
