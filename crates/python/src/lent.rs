//! Arrays that are read where they lie, because they cannot be written to. The unsafe operation of this crate.

use std::sync::Arc;

use numpy::ndarray::Dimension;
use numpy::{Element, PyReadonlyArray, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefReference};

use crate::errors::exception;

/// The values of an array, which is kept for as long as they are read. Dropped where the interpreter is not held, it is
/// let go when somebody holds it next.
pub struct Lent<T: 'static> {
    values: &'static [T],
    _array: Py<PyAny>,
}

impl<T> Lent<T> {
    /// The values where they lie; none of them outlives the array.
    pub fn values(&self) -> &[T] {
        self.values
    }
}

impl<T> AsRef<[T]> for Lent<T> {
    fn as_ref(&self) -> &[T] {
        self.values
    }
}

/// The arrays of a data set that others hold. Clones are of the same.
#[derive(Clone, Default)]
pub struct Lenders(Arc<Vec<Lender>>);

struct Lender {
    array: Py<PyAny>,
    /// NumPy resizes no array that somebody has a weak reference to: its memory stays where it is.
    _stays: Option<Py<PyWeakrefReference>>,
}

impl Lenders {
    /// The values of an array where they lie, if they lie row after row and nothing in Python can write to them; else
    /// they are to be copied.
    pub fn lend<T: Element, D: Dimension>(
        &mut self,
        array: &PyReadonlyArray<'_, T, D>,
    ) -> PyResult<Option<Lent<T>>> {
        let (Some(holder), true, Ok(values)) =
            (holder(array.as_any())?, array.is_c_contiguous(), array.as_slice())
        else {
            return Ok(None);
        };
        // SAFETY: the values live as long as the array, which is kept with them, and lie where they are: an array that
        // others hold a weak reference to is not resized. They do not change, on the condition that docs/python.md
        // states: neither the array nor whoever holds its memory lets anybody write to it, and `check` refuses to go on
        // if that was taken back. No code of ours skips bounds checks on what it finds there.
        #[allow(unsafe_code)]
        let values: &'static [T] = unsafe { &*std::ptr::from_ref(values) };
        let kept = || array.as_any().clone().unbind();
        let _stays = match holder.cast::<PyUntypedArray>() {
            Ok(array) => Some(PyWeakrefReference::new(array.as_any())?.unbind()),
            Err(_) => None,
        };
        let lender = Lender { array: kept(), _stays };
        Arc::get_mut(&mut self.0).expect("nobody else has it yet").push(lender);
        Ok(Some(Lent { values, _array: kept() }))
    }

    /// How many arrays there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Refuses to go on where an array can be written to again.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        for lender in self.0.iter() {
            if holder(lender.array.bind(py))?.is_none() {
                let message = "x was made writable after the graph was made of it, which reads it where it lies; \
                               make another graph, or leave x read-only";
                return Err(exception(py, "DataError", message));
            }
        }
        Ok(())
    }
}

/// Whoever holds the memory of an array in the end, if nobody on the way there lets anyone write to it.
fn holder<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut holder = array.clone();
    loop {
        let next = if holder.cast::<PyUntypedArray>().is_ok() {
            if holder.getattr("flags")?.getattr("writeable")?.is_truthy()? {
                return Ok(None);
            }
            let base = holder.getattr("base")?;
            if base.is_none() { holder.clone() } else { base }
        } else {
            // Bytes, files that were mapped for reading, buffers of other libraries. Who shows no memory is not known
            // to keep it.
            match PyMemoryView::from(&holder) {
                Ok(seen) if seen.getattr("readonly")?.is_truthy()? => seen.getattr("obj")?,
                _ => return Ok(None),
            }
        };
        if next.is(&holder) {
            return Ok(Some(holder));
        }
        holder = next;
    }
}
