use super::*;

fn sparse() -> Features {
    let values = Some(vec![3.0, 2.0, 5.0].into());
    Features::sparse(3, 4, vec![0, 2, 2, 3], vec![3, 1, 0], values).unwrap()
}

#[test]
fn large_values_are_found_and_brought_within_a_limit() {
    let dense = Features::dense(2, 3, vec![0.0, 1.0, -2.0, 3.0, 9.0, -8.0]).unwrap();
    assert_eq!(dense.first_beyond(5.0), Some((1, 1, 9.0)));
    assert_eq!(dense.clone().clamped(5.0).to_dense(2), [0.0, 1.0, -2.0, 3.0, 5.0, -5.0]);
    assert_eq!(dense.first_beyond(9.0), None);
    let values = Some(vec![2.0, -7.0].into());
    let sparse = Features::sparse(3, 4, vec![0, 0, 1, 2], vec![3, 1], values).unwrap();
    assert_eq!(sparse.first_beyond(5.0), Some((2, 1, -7.0)));
    assert_eq!(sparse.clamped(5.0).row(2).collect::<Vec<_>>(), [(1, -5.0)]);
    let ones = Features::sparse(1, 2, vec![0, 1], vec![1], None).unwrap();
    assert_eq!(ones.first_beyond(0.5), None, "ones are held by no value");
}

#[test]
fn dense_and_sparse_say_the_same() {
    let dense = [0., 2., 0., 3., 0., 0., 0., 0., 5., 0., 0., 0.];
    assert_eq!(sparse().to_dense(3), dense);
    let other = Features::dense(3, 4, dense.to_vec()).unwrap();
    assert_eq!(sparse(), other);
    assert_eq!(sparse().select(&[2, 0]), other.select(&[2, 0]));
    assert_eq!((sparse().nonzeros(), other.nonzeros()), (3, 3));
    assert_ne!(sparse(), other.select(&[2, 1, 0]));
}

#[test]
fn half_precision_says_what_single_precision_does() {
    let exact = [0.0, 1.0, -2.5, 0.125, 65504.0, -0.0];
    let wide = Features::dense(2, 3, exact.to_vec()).unwrap();
    let half = wide.clone().halved(2).unwrap();
    assert!(matches!(half, Features::Half { columns: 3, .. }));
    assert_eq!((half.bytes(), half.nonzeros(), half.to_dense(2)), (12, 4, exact.to_vec()));
    assert_eq!((&half, half.select(&[1])), (&wide, wide.select(&[1])));
    assert_eq!(half.clone().widened(), wide);
    assert_eq!((half.first_beyond(100.0), half.first_beyond(1e6)), (Some((1, 1, 65504.0)), None));
    assert_eq!(half.clone().clamped(2.0).to_dense(2)[2..5], [-2.0, 0.125, 2.0]);
    assert_eq!(sparse().halved(3).unwrap(), sparse());
    let beyond = Features::dense(2, 1, vec![1.0, 70000.0]).unwrap().halved(2).unwrap_err();
    assert_eq!(beyond.place(), Some(&Place::Node(1)));
    assert!(Features::half(2, 2, vec![f16::ZERO; 3]).is_err());
    let infinite = Features::half(2, 1, vec![f16::ONE, f16::INFINITY]).unwrap_err();
    assert_eq!(infinite.place(), Some(&Place::Node(1)));
}

#[test]
fn compact_takes_the_smaller_form() {
    let one_hot = (0..1000).map(|i| if i % 100 == i / 100 { 1.0 } else { 0.0 }).collect::<Vec<f32>>();
    let compact = Features::dense(10, 100, one_hot.clone()).unwrap().compact(10);
    assert!(matches!(compact, Features::Sparse { values: None, .. }));
    assert_eq!(compact.to_dense(10), one_hot);
    assert!(matches!(sparse().compact(3), Features::Dense { .. }));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Features::dense(2, 2, vec![0.; 3]).is_err());
    assert!(Features::sparse(1, 2, vec![0, 1], vec![2], None).is_err());
    assert!(Features::sparse(1, 2, vec![0, 2], vec![1, 1], None).is_err());
    assert!(Features::sparse(1, 2, vec![0, 3], vec![1], None).is_err());
    assert!(Features::sparse(2, 2, vec![0, 1], vec![1], None).is_err());
    // What a file holds was finite when it was written.
    let forged = Features::Dense { columns: 2, values: vec![0., 0., 0., f32::NAN].into() };
    assert_eq!(forged.check(2).unwrap_err().place(), Some(&Place::Node(1)));
}

/// A value of a private row must not decide whether there are features.
#[test]
fn values_that_are_not_finite_are_brought_into_range() {
    let (most, least) = (f32::INFINITY, f32::NEG_INFINITY);
    let dense = Features::dense(2, 2, vec![1., most, least, f32::NAN]).unwrap();
    assert_eq!(dense.to_dense(2), [1., f32::MAX, f32::MIN, 0.]);
    let sparse = Features::sparse(2, 2, vec![0, 1, 2], vec![1, 0], Some(vec![1., most].into())).unwrap();
    assert_eq!(sparse.to_dense(2), [0., 1., f32::MAX, 0.]);
    assert_eq!([1e39, -1e39, f64::NAN, 0.5].map(crate::single), [f32::MAX, f32::MIN, 0., 0.5]);
}
