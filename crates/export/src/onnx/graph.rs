//! A graph of ONNX operations over matrices of one row a node.

use std::collections::HashSet;

use super::proto::Message;

/// The version of the operations, and of the file that goes with it.
const OPERATIONS: u64 = 17;
const FILE_VERSION: u64 = 8;

/// The operations of trees, and their version.
const TREES: &str = "ai.onnx.ml";
const TREES_VERSION: u64 = 3;

const FLOAT: u64 = 1;

/// An attribute of an operation.
pub enum Attribute {
    /// A whole number.
    Int(&'static str, i64),
    /// Whole numbers.
    Ints(&'static str, Vec<i64>),
    /// A number.
    Float(&'static str, f32),
    /// Numbers.
    Floats(&'static str, Vec<f32>),
    /// A text.
    Text(&'static str, &'static str),
    /// Texts.
    Texts(&'static str, Vec<&'static str>),
}

/// A graph that is being written. Values go by name; those that no output is made of are left out.
#[derive(Default)]
pub struct Graph {
    inputs: Vec<Message>,
    outputs: Vec<(String, Message)>,
    constants: Vec<(String, Message)>,
    operations: Vec<Operation>,
    named: usize,
    has_trees: bool,
}

struct Operation {
    inputs: Vec<String>,
    output: String,
    message: Message,
}

impl Graph {
    /// A matrix that users give.
    pub fn input(&mut self, name: &str, columns: usize) -> String {
        self.inputs.push(value_info(name, columns));
        name.into()
    }

    /// A matrix that users get.
    pub fn output(&mut self, name: &str, columns: usize, value: &str) {
        self.add_as("Identity", &[value], name, &[]);
        self.outputs.push((name.into(), value_info(name, columns)));
    }

    /// Numbers that are part of the model.
    pub fn constant(&mut self, shape: &[usize], values: &[f32]) -> String {
        let name = self.new_name("parameter");
        let mut tensor = Message::default();
        for &dimension in shape {
            tensor.whole(1, dimension as u64);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        tensor.whole(2, FLOAT).text(8, &name).bytes(9, &bytes);
        self.constants.push((name.clone(), tensor));
        name
    }

    /// One number.
    pub fn number(&mut self, value: f32) -> String {
        self.constant(&[1], &[value])
    }

    /// The result of an operation.
    pub fn add(&mut self, operation: &str, inputs: &[&str]) -> String {
        self.add_with(operation, inputs, &[])
    }

    /// The result of an operation with attributes.
    pub fn add_with(&mut self, operation: &str, inputs: &[&str], attributes: &[Attribute]) -> String {
        let name = self.new_name("value");
        self.add_as(operation, inputs, &name, attributes);
        name
    }

    /// The sum of the leaves of trees at which each row ends.
    pub fn trees(&mut self, input: &str, attributes: &[Attribute]) -> String {
        self.has_trees = true;
        self.add_with("TreeEnsembleRegressor", &[input], attributes)
    }

    /// The result of an operation along the columns of each row, one column wide.
    pub fn over_columns(&mut self, operation: &str, input: &str) -> String {
        let attributes = [Attribute::Ints("axes", vec![1]), Attribute::Int("keepdims", 1)];
        self.add_with(operation, &[input], &attributes)
    }

    fn add_as(&mut self, operation: &str, inputs: &[&str], output: &str, attributes: &[Attribute]) {
        let mut node = Message::default();
        for input in inputs {
            node.text(1, input);
        }
        node.text(2, output).text(3, &format!("{operation} {output}")).text(4, operation);
        if operation == "TreeEnsembleRegressor" {
            node.text(7, TREES);
        }
        for attribute in attributes {
            let mut message = Message::default();
            match attribute {
                Attribute::Int(name, value) => message.text(1, name).whole(3, *value as u64).whole(20, 2),
                Attribute::Float(name, value) => message.text(1, name).float(2, *value).whole(20, 1),
                Attribute::Ints(name, values) => {
                    message.text(1, name);
                    for &value in values {
                        message.whole(8, value as u64);
                    }
                    message.whole(20, 7)
                }
                Attribute::Floats(name, values) => {
                    message.text(1, name);
                    for &value in values {
                        message.float(7, value);
                    }
                    message.whole(20, 6)
                }
                Attribute::Text(name, value) => message.text(1, name).text(4, value).whole(20, 3),
                Attribute::Texts(name, values) => {
                    message.text(1, name);
                    for value in values {
                        message.text(9, value);
                    }
                    message.whole(20, 8)
                }
            };
            node.message(5, &message);
        }
        let inputs = inputs.iter().map(ToString::to_string).collect();
        self.operations.push(Operation { inputs, output: output.into(), message: node });
    }

    fn new_name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{kind}-{}", self.named)
    }

    /// The whole file, with what is said of the model.
    pub fn into_file(self, name: &str, words: &str, properties: &[(&str, String)]) -> Vec<u8> {
        let mut used: HashSet<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let mut operations: Vec<&Operation> = vec![];
        // Every operation comes after those whose results it takes.
        for operation in self.operations.iter().rev() {
            if used.contains(operation.output.as_str()) {
                used.extend(operation.inputs.iter().map(String::as_str));
                operations.push(operation);
            }
        }
        let mut graph = Message::default();
        for operation in operations.iter().rev() {
            graph.message(1, &operation.message);
        }
        graph.text(2, name);
        for (_, constant) in self.constants.iter().filter(|(name, _)| used.contains(name.as_str())) {
            graph.message(5, constant);
        }
        for input in &self.inputs {
            graph.message(11, input);
        }
        for (_, output) in &self.outputs {
            graph.message(12, output);
        }
        let mut version = Message::default();
        version.text(1, "").whole(2, OPERATIONS);
        let mut model = Message::default();
        model.whole(1, FILE_VERSION).text(2, "progap").text(3, env!("CARGO_PKG_VERSION")).text(6, words);
        model.message(7, &graph).message(8, &version);
        if self.has_trees {
            let mut version = Message::default();
            version.text(1, TREES).whole(2, TREES_VERSION);
            model.message(8, &version);
        }
        for (key, value) in properties {
            let mut entry = Message::default();
            entry.text(1, key).text(2, value);
            model.message(14, &entry);
        }
        model.into_bytes()
    }
}

/// A matrix of any number of rows.
fn value_info(name: &str, columns: usize) -> Message {
    let [mut rows, mut width, mut shape, mut tensor, mut kind, mut info] =
        [(); 6].map(|()| Message::default());
    rows.text(2, "nodes");
    width.whole(1, columns as u64);
    shape.message(1, &rows).message(1, &width);
    tensor.whole(1, FLOAT).message(2, &shape);
    kind.message(1, &tensor);
    info.text(1, name).message(2, &kind);
    info
}
