//! Matrices that a run makes for itself, and which are gone with it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use progap_graph::{Buffer, store};

use crate::error::InFile;
use crate::{Error, Result, memory};

/// A matrix that is made rows at a time: in memory or, where the process keeps to a bound, in a file of the run's
/// folder that has no name, so that nothing is left of it however the process ends.
pub struct Scratch(Kind);

enum Kind {
    Held(Vec<f32>),
    File { file: BufWriter<File>, folder: PathBuf },
}

impl Scratch {
    /// A matrix in memory, of this many values.
    pub fn held(values: usize) -> Scratch {
        Scratch(Kind::Held(Vec::with_capacity(values)))
    }

    /// As [`Scratch::held`]; in a file of this folder where the process keeps to a bound.
    pub fn beside(folder: &Path, values: usize) -> Result<Scratch> {
        if memory::bound().is_none() {
            return Ok(Scratch::held(values));
        }
        let file = tempfile::tempfile_in(folder).in_file(folder)?;
        Ok(Scratch(Kind::File { file: BufWriter::with_capacity(1 << 20, file), folder: folder.into() }))
    }

    /// Adds the next rows.
    pub fn add(&mut self, rows: &[f32]) -> Result<()> {
        match &mut self.0 {
            Kind::Held(values) => values.extend_from_slice(rows),
            Kind::File { file, folder } => file.write_all(bytemuck::cast_slice(rows)).in_file(folder)?,
        }
        Ok(())
    }

    /// The values of all rows.
    pub fn finish(self) -> Result<Buffer<f32>> {
        match self.0 {
            Kind::Held(values) => Ok(values.into()),
            Kind::File { file, folder } => {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error).in_file(&folder)?;
                let bytes = store::map_file(&file).in_file(&folder)?;
                bytes.values_from(0).ok_or(Error::internal("a matrix is whole numbers of 32 bits"))
            }
        }
    }
}
