use super::*;
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

fn random_graph(nodes: usize, edges: usize, seed: u64) -> Graph {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    // A third of the edges go to node 0: a hub, so that blocks are uneven.
    let mut node = |hub: bool| if hub && rng.next_u32() % 3 == 0 { 0 } else { rng.next_u32() % nodes as u32 };
    let (sources, targets): (Vec<_>, Vec<_>) = (0..edges).map(|_| (node(false), node(true))).unzip();
    Graph::from_edges(nodes, &sources, &targets).unwrap()
}

/// The definition, edge by edge in f64 or i64.
fn by_definition<T: Copy>(
    graph: &Graph,
    width: usize,
    messages: &[T],
    weights: &[T],
    value: impl Fn(T, T) -> f64,
) -> Vec<f64> {
    let mut sums = vec![0.0; graph.nodes() * width];
    for (j, i) in graph.iter_edges() {
        for k in 0..width {
            let j = j as usize;
            sums[i as usize * width + k] += value(messages[j * width + k], weights[j]);
        }
    }
    sums
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

fn random_bytes(count: usize, seed: u64) -> Vec<i8> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(|_| rng.next_u64() as i8).collect()
}

fn check_width(graph: &Graph, width: usize) {
    let nodes = graph.nodes();
    let small = random_bytes(nodes * width, width as u64);
    // Small enough that i32 holds any sum of weighted 16-bit messages here.
    let weights: Vec<i8> = random_bytes(nodes, 99).iter().map(|w| w >> 4).collect();
    let expected = by_definition(graph, width, &small, &weights, |m, _| f64::from(m));
    let weighted = by_definition(graph, width, &small, &weights, |m, w| f64::from(m) * f64::from(w));
    let exact = |sums: Vec<i64>| sums.iter().map(|&s| s as f64).collect::<Vec<_>>();
    for threads in [1, 2, 5] {
        let (mut a, mut b, mut c) =
            (vec![7i32; nodes * width], vec![7i32; nodes * width], vec![7i64; nodes * width]);
        let medium: Vec<i16> = small.iter().map(|&m| m.into()).collect();
        let (w32, w64): (Vec<i32>, Vec<i64>) = weights.iter().map(|&w| (i32::from(w), i64::from(w))).unzip();
        with_threads(threads, || {
            sum(graph, width, &small, None, &mut a).unwrap();
            sum(graph, width, &medium, Some(&w32), &mut b).unwrap();
            sum(graph, width, &medium, Some(&w64), &mut c).unwrap();
        });
        assert_eq!(exact(a.iter().map(|&s| s.into()).collect()), expected, "i8, width {width}");
        assert_eq!(exact(b.iter().map(|&s| s.into()).collect()), weighted, "i16 -> i32, width {width}");
        assert_eq!(exact(c), weighted, "i16 -> i64, width {width}");
    }
    let floats: Vec<f32> = small.iter().map(|&m| f32::from(m) / 3.0).collect();
    let factors: Vec<f32> = weights.iter().map(|&w| f32::from(w) / 7.0).collect();
    let run = |threads, weights| {
        let mut sums = vec![f32::NAN; nodes * width];
        with_threads(threads, || sum(graph, width, &floats, weights, &mut sums).unwrap());
        sums
    };
    for weights in [None, Some(&factors[..])] {
        let one = run(1, weights);
        assert_eq!(one, run(3, weights), "f32 sums have a fixed order");
        let exact = by_definition(graph, width, &floats, &factors, |m, w| {
            f64::from(m) * if weights.is_some() { f64::from(w) } else { 1.0 }
        });
        for (a, b) in one.iter().zip(exact) {
            // 1,500 terms below 800 with rounding 2^-24 each, first order.
            assert!((f64::from(*a) - b).abs() < 0.1, "{a} {b}");
        }
    }
}

#[test]
fn every_width_matches_the_definition_on_any_number_of_threads() {
    let graph = random_graph(150, 3000, 1);
    for width in 1..=MAX_WIDTH {
        check_width(&graph, width);
    }
}

#[test]
fn nodes_without_edges_get_zero() {
    let graph = Graph::from_edges(3, &[], &[]).unwrap();
    let mut sums = [9.0f32; 3];
    sum(&graph, 1, &[1.0f32; 3], None, &mut sums).unwrap();
    assert_eq!(sums, [0.0; 3]);
}

#[test]
fn what_could_overflow_or_does_not_fit_is_refused() {
    let star: Vec<u32> = (0..70_000).collect();
    let graph = Graph::from_edges(70_000, &star, &vec![0; 70_000]).unwrap();
    let messages = vec![i16::MIN; 70_000];
    assert!(sum(&graph, 1, &messages, None, &mut vec![0i32; 70_000]).is_err());
    let mut sums = vec![0i64; 70_000];
    sum(&graph, 1, &messages, None, &mut sums).unwrap();
    assert_eq!(sums[0], -32_768 * 70_000);
    assert!(sum(&graph, 1, &messages, Some(&vec![i64::MIN; 70_000]), &mut sums).is_err());
    let mut sums = vec![0i32; 70_000];
    assert!(sum(&graph, 0, &[] as &[i8], None, &mut sums).is_err());
    assert!(sum(&graph, 65, &[0i8; 65], None, &mut sums).is_err());
    assert!(sum(&graph, 1, &[0i8; 3], None, &mut sums).is_err());
    assert!(sum(&graph, 1, &vec![0i8; 70_000], Some(&[1]), &mut sums).is_err());
    assert!(sum(&graph, 1, &vec![0i8; 70_000], None, &mut sums[1..]).is_err());
}

proptest! {
    #[test]
    fn integer_sums_are_exact_on_random_graphs(
        nodes in 1usize..40, edges in 0usize..400, width in 1usize..20, seed: u64
    ) {
        let graph = random_graph(nodes, edges, seed);
        let messages = random_bytes(nodes * width, seed ^ 1);
        let mut sums = vec![0i32; nodes * width];
        sum(&graph, width, &messages, None, &mut sums).unwrap();
        let expected = by_definition(&graph, width, &messages, &vec![0; nodes], |m, _| m.into());
        prop_assert_eq!(sums.iter().map(|&s| f64::from(s)).collect::<Vec<_>>(), expected);
    }
}
