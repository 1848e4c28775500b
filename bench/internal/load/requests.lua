-- Sends the GET requests of a file in turn, from the given number on. Each line is a path and a key, with a tab between them.
local requests, n = {}, 0

function init(args)
  n = tonumber(args[2])
  for line in io.lines(args[1]) do
    local path, key = line:match("^([^\t]+)\t([^\t]*)$")
    wrk.headers["X-Api-Key"] = key
    requests[#requests + 1] = wrk.format("GET", path)
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
