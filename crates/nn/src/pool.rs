//! Memory that is used again from step to step, instead of asked for and cleared by the system each time.

use std::sync::Mutex;

/// Things of one kind, lent out. A clone is empty.
#[derive(Debug)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    /// Lends one; `new` makes it if there is none.
    pub fn lend(&self, new: impl FnOnce() -> T) -> Lent<'_, T> {
        let kept = self.0.lock().ok().and_then(|mut kept| kept.pop());
        Lent { pool: self, item: Some(kept.unwrap_or_else(new)) }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool(Mutex::new(vec![]))
    }
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Pool::default()
    }
}

/// One thing on loan: it goes back when dropped.
pub(crate) struct Lent<'p, T> {
    pool: &'p Pool<T>,
    item: Option<T>,
}

impl<T> std::ops::Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("there until dropped")
    }
}

impl<T> std::ops::DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("there until dropped")
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let (Some(item), Ok(mut kept)) = (self.item.take(), self.pool.0.lock()) {
            kept.push(item);
        }
    }
}
