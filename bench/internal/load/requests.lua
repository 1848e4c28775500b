-- Sends the requests of a file in turn, from the given number on. Each line is a path, a key and the JSON to POST, with tabs
-- between them; without JSON it is a GET.
local requests, n = {}, 0

function init(args)
  n = tonumber(args[2])
  for line in io.lines(args[1]) do
    local path, key, body = line:match("^([^\t]+)\t([^\t]*)\t(.*)$")
    wrk.headers["X-Api-Key"] = key
    if body == "" then
      requests[#requests + 1] = wrk.format("GET", path)
    else
      wrk.headers["Content-Type"] = "application/json"
      requests[#requests + 1] = wrk.format("POST", path, nil, body)
    end
  end
end

function request()
  n = n % #requests + 1
  return requests[n]
end

-- One line for the program: requests, microseconds, answers that were not 2xx, broken ones, and the
-- median time to the answer in microseconds.
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("\nsummary %d %d %d %d %d\n", summary.requests, summary.duration, e.status,
    e.connect + e.read + e.write + e.timeout, latency:percentile(50)))
end
