use std::time::Instant;
fn main() {
    let (x, w, b, d) = (vec![0.5f32; 64*16], vec![0.1f32; 256], vec![0.1f32; 16], vec![0.5f32; 64*48]);
    let (mut out, mut g) = (vec![0f32; 64*16], vec![0f32; 16*48]);
    for _ in 0..3 {
    let t = Instant::now();
    for _ in 0..20000 { progap_nn::try_it(64, &x, &w, &b, &d, &mut out, &mut g); }
    println!("{} ns/row", t.elapsed().as_secs_f64() / 20000.0 / 64.0 * 1e9);
    }
}
