// Puts images into a request's last user turn, as each API writes them, and finds all images of a request again.

const chatImage = (uri) => ({ type: "image_url", image_url: { url: uri } });
const responsesImage = (uri) => ({ type: "input_image", image_url: uri });

function anthropicImage(uri) {
  const [, media, data] = /^data:([^;,]+);base64,(.*)$/s.exec(uri);
  return { type: "image", source: { type: "base64", media_type: media, data } };
}

function lastUser(turns) {
  const turn = turns.findLast((one) => one?.role === "user");
  if (!turn) throw new Error("the request has no user turn that images could go into");
  return turn;
}

function into(turn, images, text) {
  const before = typeof turn.content === "string" ? [{ type: text, text: turn.content }] : (turn.content ?? []);
  turn.content = [...before, ...images];
}

/** The request with the images (data URIs) in its last user turn. Throws an Error that says why not. */
export function merged(path, request, uris) {
  if (!uris.length) return request;
  const result = structuredClone(request);
  if (path.includes("/responses")) {
    if (typeof result.input === "string") result.input = [{ role: "user", content: result.input }];
    if (!Array.isArray(result.input)) throw new Error("the request has no input that images could go into");
    into(lastUser(result.input), uris.map(responsesImage), "input_text");
  } else if (Array.isArray(result.messages)) {
    const image = path.endsWith("/messages") ? anthropicImage : chatImage;
    into(lastUser(result.messages), uris.map(image), "text");
  } else {
    throw new Error("this API has no place for images; begin from a chat");
  }
  return result;
}

/** The data URIs of all images in a request, in the order in which they stand there; null for one that is a link. */
export function imagesOf(request) {
  const found = [];
  const waiting = [request];
  while (waiting.length) {
    const value = waiting.pop();
    if (Array.isArray(value)) waiting.push(...value.toReversed());
    else if (value && typeof value === "object") {
      const uri = uriOf(value);
      if (uri === undefined) waiting.push(...Object.values(value).toReversed());
      else found.push(uri);
    }
  }
  return found;
}

function uriOf(part) {
  const written =
    part.type === "image_url" ? (part.image_url?.url ?? part.image_url)
    : part.type === "input_image" ? part.image_url
    : part.type === "image" && part.source ? (part.source.type === "base64" ? `data:${part.source.media_type};base64,${part.source.data}` : "link")
    : undefined;
  if (typeof written !== "string") return undefined;
  return /^data:image\/(png|jpeg|gif|webp|bmp|avif);base64,/.test(written) ? written : null;
}
