//! The inner loops, compiled once for every set of vector instructions and chosen at run time.
//!
//! Matrices are row after row. Their columns are padded with zeros to a whole number of vectors ([`padded`]), so
//! that one pair of loops with fixed trip counts serves every width: a network of width 16 runs on two AVX2
//! registers (or one of AVX-512) per row.
//!
//! Every row is computed by the same sequence of operations whatever its neighbours in a block are. Per-sample
//! clipping relies on this: a sample's gradient must not change, not even in its last bit, when another sample
//! joins the batch.

pub(crate) mod columns;
pub(crate) mod exp;
mod fixed;
pub(crate) mod join;
pub(crate) mod product;
pub(crate) mod tile;

/// Columns as stored: a multiple of 16, or 8 where that is enough.
pub(crate) fn padded(columns: usize) -> usize {
    if columns <= 8 { 8 } else { columns.next_multiple_of(16) }
}

/// Defines a function whose body is compiled for each set of vector instructions.
///
/// All references in the signature have the lifetime `'a`. The body lives in an always-inlined method, because a
/// closure handed to `pulp::Arch::dispatch` may be left out of line and is then compiled for the baseline only.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<'a $(, const $c:ident: $ct:ty)*>(
        $($arg:ident: $type:ty),* $(,)?
    ) $(-> $output:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<'a $(, const $c: $ct)*>($($arg: $type),*) $(-> $output)? {
            struct Work<'a $(, const $c: $ct)*> { $($arg: $type),* }
            impl<'a $(, const $c: $ct)*> pulp::WithSimd for Work<'a $(, $c)*> {
                type Output = vectorised!(@output $($output)?);

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
                    let Work { $($arg),* } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Work::<'a $(, $c)*> { $($arg),* })
        }
    };
    (@output) => { () };
    (@output $output:ty) => { $output };
}
pub(crate) use vectorised;

/// Does work on rows of 8 columns. In a vector of 16 half of the lanes would be idle, and take as long.
pub(crate) fn dispatch_narrow<W: pulp::WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(eight_lanes) = pulp::x86::V3::try_new() {
        return pulp::Simd::vectorize(eight_lanes, work);
    }
    pulp::Arch::new().dispatch(work)
}

/// Runs `$body` with the constant `$lanes` and each column `$at` where a vector of that many lanes starts.
macro_rules! for_lanes {
    ($columns:expr, $lanes:ident, $at:ident, $body:block) => {
        if $columns == 8 {
            const $lanes: usize = 8;
            let $at = 0;
            $body
        } else {
            const $lanes: usize = 16;
            for $at in (0..$columns).step_by($lanes) {
                $body
            }
        }
    };
}
pub(crate) use for_lanes;

/// The `L` values from `at` on, as an array.
#[inline(always)]
pub(crate) fn lanes<const L: usize>(values: &[f32], at: usize) -> &[f32; L] {
    values[at..].first_chunk().expect("padded to whole vectors")
}

/// As [`lanes`], to write to.
#[inline(always)]
pub(crate) fn lanes_mut<const L: usize>(values: &mut [f32], at: usize) -> &mut [f32; L] {
    values[at..].first_chunk_mut().expect("padded to whole vectors")
}

/// The sum of all lanes, by halves.
#[inline(always)]
pub(crate) fn sum_lanes<const L: usize>(v: &[f32; L]) -> f32 {
    let mut eight = [0.0; 8];
    for chunk in v.as_chunks::<8>().0 {
        for j in 0..8 {
            eight[j] += chunk[j];
        }
    }
    let four: [f32; 4] = std::array::from_fn(|j| eight[j] + eight[j + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[cfg(test)]
pub(crate) mod testing {
    /// A matrix with values between -0.5 and 0.5.
    pub fn matrix(rows: usize, columns: usize, seed: u32) -> Vec<f32> {
        (0..rows * columns)
            .map(|i| ((i as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / 4.3e9 - 0.5)
            .collect()
    }

    /// Every value is what it should be, but for rounding.
    pub fn close(found: &[f32], exact: impl Fn(usize) -> f32) {
        for (i, found) in found.iter().enumerate() {
            assert!((found - exact(i)).abs() < 1e-5, "value {i}: {found}, not {}", exact(i));
        }
    }
}
