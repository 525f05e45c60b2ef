//! The answers of the vault that lie in a release.

use super::Release;
use crate::Result;
use crate::files;
use crate::method;
use crate::rows::{Aggregate, Aggregates};

impl Release {
    /// Every aggregate that the release shows, those of stages after the released one included: all were asked for, all
    /// are there to be read, and an attacker reads them all.
    pub(crate) fn answers(&self) -> Result<&Aggregates> {
        if let Some(answers) = self.answers.get() {
            return Ok(answers);
        }
        let settings = self.settings()?;
        let sizes = (self.statement.feature_columns, self.nodes.classes());
        let widths = method::program(settings, sizes, self.statement.choice.as_ref()).aggregate_widths();
        let mut answers = self.predictor.aggregates.clone();
        for (index, &width) in widths.iter().enumerate().skip(answers.len()) {
            let name = self.contents.aggregate(index + 1);
            if self.listed.public.files.contains_key(&name) {
                let bytes = self.listed.content(&name, self.bounds.of(&name))?;
                let values =
                    files::parse_matrix(&self.folder.join(&name), &bytes, self.nodes.nodes(), width)?;
                answers.push(Aggregate { values, width });
            }
        }
        Ok(self.answers.get_or_init(|| answers))
    }
}
