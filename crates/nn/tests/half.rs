//! Rows in half precision: what they hold is what the same rows in single precision hold, to the last bit.

use half::f16;
use progap_nn::{
    Adam, Architecture, Batch, Design, Evidence, Input, Inputs, Network, Optimiser, Packed, Task, embed_rows,
    epoch, probabilities,
};

const ROWS: usize = 300;
const COLUMNS: usize = 9;

#[test]
fn networks_and_fits_read_half_precision_as_what_it_is() {
    let half: Vec<f16> =
        (0..ROWS * COLUMNS).map(|k| f16::from_f32(((k * 37 % 101) as f32 - 50.0) / 17.0)).collect();
    let wide: Vec<f32> = half.iter().map(|value| value.to_f32()).collect();
    let labels: Vec<u32> = (0..ROWS as u32).map(|row| row % 3).collect();
    let rows: Vec<u32> = (0..ROWS as u32).rev().step_by(2).collect();
    let outcome = |input: Input<'_>| {
        let inputs = Inputs::new(vec![input]).expect("inputs");
        let mut network = Network::new(Architecture::new(vec![COLUMNS], 3), 1).expect("a network");
        let mut adam = Optimiser::adam(Adam::default()).expect("an optimiser");
        let batch = Batch::new(&inputs, &labels, &rows, 3).expect("a batch");
        let loss = epoch(&mut network, &mut adam, batch, 7).expect("an epoch").loss;
        let packed = Packed::new(&inputs, &labels, &rows).expect("copies");
        assert!(Packed::within(10, &inputs, &labels, &rows).is_none(), "too many values");
        let copies = packed.inputs().expect("copies");
        let more =
            epoch(&mut network, &mut adam, packed.batch(&copies, 3).expect("a batch"), 8).expect("an epoch");
        let told = probabilities(&network, &inputs, &rows).expect("probabilities");
        let sent = embed_rows(&network, 0, input, 5..200).expect("embeddings");
        let task = Task {
            evidence: Evidence::Labels(&labels),
            classes: 3,
            row_weights: &[],
            hidden: 0,
            decay: 0.1,
            towards: &[],
            iterations: 20,
            tolerance: 1e-6,
            seed: 0,
        };
        let everyone: Vec<u32> = (0..ROWS as u32).collect();
        let design = Design::new(&inputs, &everyone).expect("a design");
        let fitted = design.fit(&task, None).expect("a fit").0.logits(&inputs, &rows).expect("logits");
        (loss, more.loss, told, sent, fitted)
    };
    let of_half = outcome(Input::Half { columns: COLUMNS, values: &half });
    assert!(of_half == outcome(Input::Dense { columns: COLUMNS, values: &wide }));
    assert!(Inputs::new(vec![Input::Half { columns: COLUMNS, values: &half[1..] }]).is_err());
}
