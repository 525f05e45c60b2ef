//! The routes: what each takes and gives, who may ask, and how long it may take.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, MatchedPath, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use progap_formats::read::table::LaterTable;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use crate::connection::Peer;
use crate::error::{ErrorBody, Refusal};
use crate::infer::{self, InferAnswer, InferRequestBody, ModelMetadata};
use crate::model::Model;
use crate::nodes::{self, NodesBody, Prediction, PredictionList, RowsBody};
use crate::parse::{Cell, InferRequest, NodesRequest, RowsRequest};
use crate::{Shared, access, page};

type Checked<T> = std::result::Result<T, Refusal>;
type Answer = Checked<Response>;
type ReadBody = std::result::Result<Bytes, BytesRejection>;

/// Bodies of more bytes are not read by the threads that answer everyone.
const SMALL_BODY: usize = 16 << 10;
/// Answers about more rows wait for room.
const FEW_ROWS: usize = 256;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let infer_route = || post(infer_model);
    Router::new()
        .route("/", get(page::html))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .route("/openapi.json", get(description))
        .route("/metrics", get(metrics))
        .route("/v2", get(server_metadata))
        .route("/v2/health/live", get(live))
        .route("/v2/health/ready", get(ready))
        .route("/v2/models/{model}", get(model_metadata))
        .route("/v2/models/{model}/ready", get(model_ready))
        .route("/v2/models/{model}/infer", infer_route())
        .route("/v2/models/{model}/versions/{version}", get(model_metadata))
        .route("/v2/models/{model}/versions/{version}/ready", get(model_ready))
        .route("/v2/models/{model}/versions/{version}/infer", infer_route())
        .route("/v1/models", get(models))
        .route("/v1/nodes/{id}", get(node))
        .route("/v1/nodes", post(several_nodes))
        .route("/v1/rows", post(new_rows))
        .route("/v1/guarantee", get(guarantee))
        .fallback(async || {
            Refusal::new(StatusCode::NOT_FOUND, "there is nothing here; /openapi.json lists what there is")
        })
        .method_not_allowed_fallback(async || {
            Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this is asked in another way; /openapi.json says how",
            )
        })
        .layer(DefaultBodyLimit::max(shared.limits.max_body))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Lets a request in, bounds how long it takes, and counts it.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        _ => "other",
    };
    let name = route.as_ref().map_or("none", MatchedPath::as_str);
    let limit = shared.limits.timeout;
    let late = || {
        Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the request took longer than {} s", limit.as_secs()),
        )
    };
    let answered = async {
        admit(&shared, &request, name)?;
        let permits = permits_for_body(&shared, request.headers())?;
        let _room = shared.bodies.acquire_many(permits).await;
        Ok(next.run(request).await)
    };
    let mut response = match timeout(limit, answered).await {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => refusal_of(refusal),
        Err(_) => closing(late()),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, took) = (response.status().as_u16(), start.elapsed());
    shared.metrics.request(method, name, status, took);
    shared.log.request(method, name, status, took.as_secs_f64());
    response
}

/// A refusal before the body was read: what a client still sends is not waited for.
fn refusal_of(refusal: Refusal) -> Response {
    match refusal.status {
        StatusCode::PAYLOAD_TOO_LARGE => closing(refusal),
        _ => refusal.into_response(),
    }
}

fn closing(refusal: Refusal) -> Response {
    let mut response = refusal.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Refuses requests that are not authorised, or too frequent.
fn admit(shared: &Shared, request: &Request, route: &str) -> Checked<()> {
    shared.rates.check(peer_of(request))?;
    if shared.local_names_only && !access::names_this_machine(request.headers()) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "this server answers programs on its own machine, and the request names another host",
        ));
    }
    match route {
        // Probes of health need no secret, and the page and its description say nothing of a release.
        "/" | "/page.js" | "/page.css" | "/openapi.json" | "/v2/health/live" | "/v2/health/ready" => Ok(()),
        _ => shared.access.check_token(request.headers()),
    }
}

fn peer_of(request: &Request) -> IpAddr {
    request.extensions().get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip())
}

/// The room that a body takes: all that are being read together are bounded.
fn permits_for_body(shared: &Shared, headers: &HeaderMap) -> Checked<u32> {
    let max = shared.limits.max_body;
    let size = match headers.get(header::CONTENT_LENGTH) {
        Some(length) => {
            length.to_str().ok().and_then(|length| length.parse::<u64>().ok()).unwrap_or(u64::MAX)
        }
        None if headers.contains_key(header::TRANSFER_ENCODING) => max as u64,
        None => 0,
    };
    if size > max as u64 {
        return Err(too_large(max));
    }
    Ok(if size as usize <= SMALL_BODY { 0 } else { size.div_ceil(1024) as u32 })
}

fn too_large(max: usize) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body has more than {max} bytes: ask for fewer rows at a time"),
    )
}

/// The body of a request, as JSON unless another type is allowed.
fn body(shared: &Shared, headers: &HeaderMap, body: ReadBody, types: &[&str]) -> Checked<Bytes> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    if kind.is_some_and(|kind| !types.contains(&kind.as_str())) {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("the body must be {}", types.join(" or ")),
        ));
    }
    if headers.contains_key("inference-header-content-length") {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "tensors in binary are not read: send them as JSON",
        ));
    }
    body.map_err(|rejection| match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(shared.limits.max_body),
        _ => Refusal::bad("the body ended before it was complete"),
    })
}

/// Works where nobody else waits for it, if it may take long.
async fn work<T: Send + 'static>(is_long: bool, work: impl FnOnce() -> T + Send + 'static) -> Checked<T> {
    match is_long {
        false => Ok(work()),
        true => tokio::task::spawn_blocking(work).await.map_err(|_| {
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request could not be answered: this is a mistake of the server",
            )
        }),
    }
}

/// Room for a large answer, which is kept until it was read. Where there is none the client is to come back.
fn room_for_answer(shared: &Shared, model: &Model, rows: usize) -> Checked<Option<OwnedSemaphorePermit>> {
    if rows > shared.limits.max_rows {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "{rows} rows are more than {} in one request: ask for fewer at a time",
                shared.limits.max_rows
            ),
        ));
    }
    if rows <= FEW_ROWS {
        return Ok(None);
    }
    let size = rows.saturating_mul(64 + 14 * model.classes.len()).div_ceil(1024).min(shared.max_answers);
    let busy = || {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large answers are being sent: ask again later",
        )
    };
    shared.answers.clone().try_acquire_many_owned(size as u32).map(Some).map_err(|_| busy())
}

fn json_response(bytes: Vec<u8>, room: Option<OwnedSemaphorePermit>) -> Response {
    let body = match room {
        None => Body::from(bytes),
        Some(room) => Body::new(Held { bytes: Some(bytes.into()), _room: room }),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn json_of(value: &impl Serialize) -> Response {
    json_response(serde_json::to_vec(value).unwrap_or_default(), None)
}

/// A body that gives back its room once it was sent.
struct Held {
    bytes: Option<Bytes>,
    _room: OwnedSemaphorePermit,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // In parts: what is kept for a client that reads slowly is here, and not in the buffers of its connection.
        const PART: usize = 256 << 10;
        Poll::Ready(self.bytes.as_mut().filter(|bytes| !bytes.is_empty()).map(|bytes| {
            let part = bytes.split_to(bytes.len().min(PART));
            Ok(Frame::data(part))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Which model is meant, where several are served.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
pub(crate) struct WhichModel {
    /// The name of the model; it may be left out where only one is served.
    model: Option<String>,
}

type Named = std::result::Result<Query<WhichModel>, QueryRejection>;

fn named(shared: &Shared, query: Named) -> Checked<Arc<Model>> {
    let Query(WhichModel { model }) = query.map_err(|rejection| Refusal::bad(rejection.body_text()))?;
    shared.models.get(model.as_deref())
}

/// A model, and perhaps its version, as parts of an address.
#[derive(Debug, Deserialize)]
pub(crate) struct ModelPath {
    model: String,
    version: Option<String>,
}

type InPath<T> = std::result::Result<Path<T>, PathRejection>;

fn in_path<T>(path: InPath<T>) -> Checked<T> {
    path.map(|Path(found)| found).map_err(|rejection| Refusal::bad(rejection.body_text()))
}

fn model_at(shared: &Shared, path: InPath<ModelPath>) -> Checked<Arc<Model>> {
    let ModelPath { model, version } = in_path(path)?;
    let model = shared.models.get(Some(&model))?;
    infer::check_version(&model, version.as_deref())?;
    Ok(model)
}

/// Whether the process answers.
#[derive(Serialize, ToSchema)]
struct Live {
    live: bool,
}

/// Whether predictions can be asked for.
#[derive(Serialize, ToSchema)]
struct Ready {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    ready: bool,
}

/// The server, as the protocol describes it.
#[derive(Serialize, ToSchema)]
struct ServerMetadata {
    name: &'static str,
    version: &'static str,
    extensions: Vec<String>,
}

/// The releases that are served.
#[derive(Serialize, ToSchema)]
struct ModelList {
    models: Vec<ModelEntry>,
}

/// A release that is served.
#[derive(Serialize, ToSchema)]
struct ModelEntry {
    name: String,
    /// The SHA-256 of its manifest.
    release: String,
    /// Whether it makes predictions about its own nodes, and about new rows.
    nodes: bool,
    rows: bool,
    /// Whether a prediction about a node is for its owner alone.
    owners_only: bool,
}

/// What a release guarantees.
#[derive(Serialize, ToSchema)]
struct GuaranteeAnswer {
    model: String,
    /// The SHA-256 of the release's manifest.
    release: String,
    /// In words.
    guarantee: String,
    /// For whom predictions are, where not for everyone.
    caution: Option<String>,
    /// When and how it was exported, where it is an export.
    #[schema(value_type = Option<Object>)]
    exported: Option<Value>,
    /// The privacy statement, as in `privacy.json`.
    #[schema(value_type = Object)]
    statement: Value,
}

#[utoipa::path(get, path = "/v2/health/live", tag = "Open Inference Protocol", responses((status = 200, body = Live)))]
/// Whether the process answers.
async fn live() -> Response {
    json_of(&Live { live: true })
}

#[utoipa::path(get, path = "/v2/health/ready", tag = "Open Inference Protocol",
    responses((status = 200, body = Ready), (status = 503, description = "The server is stopping", body = Ready)))]
/// Whether predictions can be asked for.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let ready = !*shared.stopping.borrow();
    let mut response = json_of(&Ready { name: None, ready });
    if !ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

#[utoipa::path(get, path = "/v2", tag = "Open Inference Protocol", security((), ("token" = [])),
    responses((status = 200, body = ServerMetadata), (status = 401, body = ErrorBody)))]
/// The server.
async fn server_metadata() -> Response {
    json_of(&ServerMetadata { name: "progap", version: env!("CARGO_PKG_VERSION"), extensions: vec![] })
}

#[utoipa::path(get, path = "/v2/models/{model}", tag = "Open Inference Protocol", security((), ("token" = [])),
    params(("model" = String, Path, description = "Its name")),
    responses((status = 200, body = ModelMetadata), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
/// What a model takes and gives, with its guarantee.
async fn model_metadata(State(shared): State<Arc<Shared>>, path: InPath<ModelPath>) -> Answer {
    let model = model_at(&shared, path)?;
    Ok(json_of(&ModelMetadata::of(&model)))
}

#[utoipa::path(get, path = "/v2/models/{model}/ready", tag = "Open Inference Protocol", security((), ("token" = [])),
    params(("model" = String, Path, description = "Its name")),
    responses((status = 200, body = Ready), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
/// Whether predictions of a model can be asked for.
async fn model_ready(State(shared): State<Arc<Shared>>, path: InPath<ModelPath>) -> Answer {
    Ok(json_of(&Ready { name: Some(model_at(&shared, path)?.name.clone()), ready: true }))
}

#[utoipa::path(post, path = "/v2/models/{model}/infer", tag = "Open Inference Protocol", security((), ("token" = [])),
    params(("model" = String, Path, description = "Its name")), request_body = InferRequestBody,
    responses((status = 200, body = InferAnswer), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, description = "The node is somebody else's", body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
/// Predictions about nodes of the release (one input `id`), or about new rows (an input for each column).
async fn infer_model(
    State(shared): State<Arc<Shared>>,
    Extension(Peer(peer)): Extension<Peer>,
    path: InPath<ModelPath>,
    headers: HeaderMap,
    bytes: ReadBody,
) -> Answer {
    let model = model_at(&shared, path)?;
    let bytes = body(&shared, &headers, bytes, &["application/json"])?;
    work(bytes.len() > SMALL_BODY, move || {
        let request = InferRequest::parse(&bytes)?;
        let (used, answer, room) = match infer::asked_nodes(&request) {
            Some(cells) => {
                let ids: Vec<_> = cells.iter().map(Cell::text).collect();
                check_owner(&shared, &model, ids.iter().map(|id| &**id), &headers, peer)?;
                let room = room_for_answer(&shared, &model, ids.len())?;
                (model.used(), infer::nodes(&model, &request, &ids)?, room)
            }
            None => {
                let room = room_for_answer(&shared, &model, request.rows())?;
                let scored = model.rows(LaterTable::Columns(&request.columns()), false)?;
                count_rows(&shared, &model, &scored);
                (scored.used, infer::rows(&model, &request, &scored)?, room)
            }
        };
        shared.metrics.predicted(&model.name, used, request.rows());
        Ok(json_response(answer, room))
    })
    .await?
}

fn count_rows(shared: &Shared, model: &Model, scored: &crate::model::Scored) {
    let misfits = scored.rejects.iter().map(|reject| reject.column.as_str());
    shared.metrics.rows(&model.name, scored.ids.len() + scored.rejects.len(), misfits);
}

#[utoipa::path(get, path = "/v1/models", tag = "Predictions", security((), ("token" = [])),
    responses((status = 200, body = ModelList), (status = 401, body = ErrorBody)))]
/// The releases that are served.
async fn models(State(shared): State<Arc<Shared>>) -> Response {
    let entry = |model: Arc<Model>| ModelEntry {
        name: model.name.clone(),
        release: model.release.sha256().into(),
        nodes: model.knows_nodes().is_ok(),
        rows: model.knows_columns(),
        owners_only: model.is_personal(),
    };
    json_of(&ModelList { models: shared.models.all().into_iter().map(entry).collect() })
}

#[utoipa::path(get, path = "/v1/nodes/{id}", tag = "Predictions", security((), ("token" = [])),
    params(("id" = String, Path, description = "The id of a node"), WhichModel),
    responses((status = 200, body = Prediction), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, description = "The node is somebody else's", body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
/// The prediction about one node of the release.
async fn node(
    State(shared): State<Arc<Shared>>,
    Extension(Peer(peer)): Extension<Peer>,
    id: InPath<String>,
    query: Named,
    headers: HeaderMap,
) -> Answer {
    let model = named(&shared, query)?;
    let id = in_path(id)?;
    check_owner(&shared, &model, std::iter::once(id.as_str()), &headers, peer)?;
    let answer = nodes::one(&model, &id)?;
    shared.metrics.predicted(&model.name, model.used(), 1);
    Ok(json_response(answer, None))
}

fn check_owner<'i>(
    shared: &Shared,
    model: &Model,
    ids: impl Iterator<Item = &'i str>,
    headers: &HeaderMap,
    peer: SocketAddr,
) -> Checked<()> {
    match model.is_personal() {
        true => shared.access.owners.check(ids, headers, peer.ip()),
        false => Ok(()),
    }
}

#[utoipa::path(post, path = "/v1/nodes", tag = "Predictions", security((), ("token" = [])), request_body = NodesBody,
    responses((status = 200, body = PredictionList), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, description = "A node is somebody else's", body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
/// The predictions about several nodes of the release.
async fn several_nodes(
    State(shared): State<Arc<Shared>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    bytes: ReadBody,
) -> Answer {
    let bytes = body(&shared, &headers, bytes, &["application/json"])?;
    work(bytes.len() > SMALL_BODY, move || {
        let request = NodesRequest::parse(&bytes)?;
        let model = shared.models.get(request.model.as_deref())?;
        check_owner(&shared, &model, request.ids.iter().map(String::as_str), &headers, peer)?;
        let room = room_for_answer(&shared, &model, request.ids.len())?;
        let answer = nodes::several(&model, &request.ids)?;
        shared.metrics.predicted(&model.name, model.used(), request.ids.len());
        Ok(json_response(answer, room))
    })
    .await?
}

#[utoipa::path(post, path = "/v1/rows", tag = "Predictions", security((), ("token" = [])), params(WhichModel),
    request_body(content((RowsBody = "application/json"), (String = "text/csv"))),
    responses((status = 200, body = PredictionList), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 408, body = ErrorBody), (status = 413, body = ErrorBody),
        (status = 415, body = ErrorBody), (status = 429, body = ErrorBody)))]
/// Predictions about new rows by their features alone, as JSON or as a CSV table. Rows that do not fit are listed with
/// their reasons.
async fn new_rows(
    State(shared): State<Arc<Shared>>,
    query: Named,
    headers: HeaderMap,
    bytes: ReadBody,
) -> Answer {
    let is_csv =
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/csv"));
    let bytes = body(&shared, &headers, bytes, &["application/json", "text/csv"])?;
    let in_query = query.map_err(|rejection| Refusal::bad(rejection.body_text()))?.0.model;
    work(bytes.len() > SMALL_BODY, move || {
        let request = if is_csv { None } else { Some(RowsRequest::parse(&bytes)?) };
        let rows = match &request {
            None => bytes.iter().filter(|&&byte| byte == b'\n').count(),
            Some(request) => request.rows.len(),
        };
        let model = shared
            .models
            .get(request.as_ref().and_then(|request| request.model.as_deref()).or(in_query.as_deref()))?;
        let room = room_for_answer(&shared, &model, rows)?;
        let scored = match &request {
            None => model.rows(LaterTable::Csv(&bytes), false)?,
            Some(request) => model.rows(LaterTable::Columns(&request.columns()?), request.lenient)?,
        };
        count_rows(&shared, &model, &scored);
        shared.metrics.predicted(&model.name, scored.used, scored.ids.len());
        Ok(json_response(nodes::rows(&model, &scored), room))
    })
    .await?
}

#[utoipa::path(get, path = "/v1/guarantee", tag = "Guarantee", security((), ("token" = [])), params(WhichModel),
    responses((status = 200, body = GuaranteeAnswer), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
/// What the release guarantees, with the statement it can be recomputed from.
async fn guarantee(State(shared): State<Arc<Shared>>, query: Named) -> Answer {
    let model = named(&shared, query)?;
    let release = &model.release;
    Ok(json_of(&GuaranteeAnswer {
        model: model.name.clone(),
        release: release.sha256().into(),
        guarantee: release.statement.in_words.clone(),
        caution: release.caution().map(String::from),
        exported: release.exported.as_ref().map(|exported| json!(exported)),
        statement: json!(release.statement),
    }))
}

#[utoipa::path(get, path = "/metrics", tag = "Operation", security((), ("token" = [])),
    responses((status = 200, description = "Counters in the text format of Prometheus", body = String, content_type = "text/plain"),
        (status = 401, body = ErrorBody)))]
/// Counters for Prometheus.
async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let models = shared
        .models
        .all()
        .iter()
        .map(|model| (model.name.clone(), model.release.sha256().to_string()))
        .collect::<Vec<_>>();
    let mut response = Response::new(Body::from(shared.metrics.text(&models)));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
    response
}

/// This description.
async fn description() -> Response {
    json_of(&openapi())
}

/// The description of all routes, as OpenAPI has it.
#[derive(OpenApi)]
#[openapi(
    info(title = "ProGAP predictions", description = "Predictions of differentially private releases, and what these guarantee."),
    paths(live, ready, server_metadata, model_metadata, model_ready, infer_model, models, node, several_nodes, new_rows, guarantee, metrics),
    components(schemas(ErrorBody)),
    modifiers(&Secured)
)]
struct Description;

struct Secured;

impl Modify for Secured {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The token of the server, where it has one."))
            .build();
        if let Some(components) = openapi.components.as_mut() {
            components.add_security_scheme("token", SecurityScheme::Http(scheme));
        }
    }
}

/// The description of all routes, as OpenAPI has it.
pub fn openapi() -> utoipa::openapi::OpenApi {
    Description::openapi()
}
