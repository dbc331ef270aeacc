/* SPDX-License-Identifier: BSD-3-Clause */
/* The UCX backend: vtable, opening, describing, closing. See README.md for how it maps the contract. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "ucx.h"

static const struct xb_key keys[] = {
	{"memory", "user|ucx",
	 "whose memory is sent: the ordinary one of the run, or one that UCX allocates"},
	{"errors", "none|peer",
	 "UCX's error handling mode; peer notices a dead peer, and may choose other protocols"},
	{NULL, NULL, NULL},
};

static int read_choice(const struct xb_setup *setup, const char *key, const char *first, const char *second,
		       int *chosen, struct xb_error *error)
{
	const char *value = xb_setup_value(setup, key, first);

	*chosen = strcmp(value, second) == 0;
	if (!*chosen && strcmp(value, first) != 0)
		return xb_fail(error, XB_E_USAGE, "ucx: %s=%.40s was asked for; %s is \"%s\" or \"%s\"", key,
			       value, key, first, second);
	return 0;
}

static int modify(ucp_config_t *config, const char *name, const char *value, struct xb_error *error)
{
	ucs_status_t status = ucp_config_modify(config, name, value);

	if (status == UCS_OK)
		return 0;
	return xb_fail(error, XB_E_USAGE, "ucx: setting UCX_%s=%s failed: %s", name, value,
		       ucs_status_string(status));
}

/* The path decides what it names; for the rest the user's UCX_* environment and UCX's defaults stay in
 * effect. */
static int apply_path(const struct xb_ucx_context *x, ucp_config_t *config, struct xb_error *error)
{
	int status = 0;

	if (x->path.tls[0])
		status = modify(config, "TLS", x->path.tls, error);
	if (status == 0 && x->path.devices[0])
		status = modify(config, "NET_DEVICES", x->path.devices, error);
	return status;
}

/*
 * A watched put must come in order. UCX may let an adapter's writes pass each other on the bus, and place
 * packets as they come (mlx5, since 1.18); ib_write_lat does neither. Options of a transport are set by
 * environment, and only where something reads them: UCX warns of others. A value of the user's stays, and
 * then there is no watching; so it is with several rails, which nobody gets without asking.
 */
static const struct {
	const char *name, *value, *device;
} ordered[] = {
	{"UCX_IB_PCI_RELAXED_ORDERING", "n", ""}, {"UCX_RC_MLX5_DDP_ENABLE", "n", "mlx5"},
	{"UCX_DC_MLX5_DDP_ENABLE", "n", "mlx5"},  {"UCX_MAX_RMA_RAILS", "1", NULL},
	{"UCX_MAX_RMA_LANES", "1", NULL},
};

static int has_device(const char *prefix)
{
	DIR *folder = opendir("/sys/class/infiniband");
	struct dirent *entry;
	int found = 0;

	while (folder && !found && (entry = readdir(folder)))
		found = entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix));
	if (folder)
		closedir(folder);
	return found;
}

static void keep_order(void)
{
	unsigned major, minor, release;

	ucp_get_version(&major, &minor, &release);
	for (size_t i = 0; i < sizeof(ordered) / sizeof(*ordered) && ordered[i].device; i++)
		if (has_device(ordered[i].device) && (!ordered[i].device[0] || major > 1 || minor >= 18))
			setenv(ordered[i].name, ordered[i].value, 0);
}

static int open_ucp(struct xb_ucx_context *x, struct xb_error *error)
{
	ucp_params_t parameters = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = x->features};
	ucp_worker_params_t worker = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucp_config_t *config;
	ucs_status_t status;
	char log[400];
	int refused;

	/*
	 * Soft-RoCE delivers datagrams without the header in which UCX looks for the destination address, so
	 * UD, and the wire-up of RC, would never get through. An option of a transport can only be set by
	 * environment; this process has no other use for it, and a value of the user's stays.
	 */
	if (x->path.soft_roce)
		setenv("UCX_UD_VERBS_ETH_DGID_CHECK", "n", 0);
	if (x->watched)
		keep_order();
	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK) {
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(error, XB_E_USAGE, "ucx: reading the UCX_* environment failed: %s%s",
			       ucs_status_string(status), log);
	}
	refused = apply_path(x, config, error);
	if (refused) {
		ucp_config_release(config);
		return refused;
	}
	status = ucp_init(&parameters, config, &x->ucp);
	ucp_config_release(config);
	if (status != UCS_OK) {
		x->ucp = NULL;
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(error, XB_E_UNAVAILABLE, "ucx: UCX does not start on %s: %s%s", x->path.text,
			       ucs_status_string(status), log);
	}
	status = ucp_worker_create(x->ucp, &worker, &x->worker);
	if (status != UCS_OK) {
		x->worker = NULL;
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(error, XB_E_TRANSPORT, "ucx: no worker on %s: %s%s", x->path.text,
			       ucs_status_string(status), log);
	}
	return 0;
}

static int ucx_open(void *context, const struct xb_setup *setup, struct xb_error *error)
{
	struct xb_ucx_context *x = context;
	struct xb_ucx_inventory inventory = {.count = 0};
	int status;

	xb_ucx_log_start(setup->verbose);
	x->log_started = 1;
	x->abort = setup->abort;
	x->endpoint = setup->endpoint;
	status = read_choice(setup, "memory", "user", "ucx", &x->ucx_memory, error);
	if (status == 0)
		status = read_choice(setup, "errors", "none", "peer", &x->peer_errors, error);
	if (status == 0 && setup->path[0]) /* nothing to check without a path, and it costs milliseconds */
		status = xb_ucx_inventory_read(&inventory, error);
	if (status == 0)
		status = xb_ucx_path_parse(setup->path, &inventory, &x->path, error);
	if (status)
		return status;
	xb_ucx_log_clear(); /* what the inventory met is not the cause of what follows */

	/* Only what the run needs: a feature more changes which transports and protocols UCX chooses. */
	x->watched = setup->op == XB_OP_WRITE_POLL;
	x->features = UCP_FEATURE_TAG | (setup->op == XB_OP_SEND ? 0 : UCP_FEATURE_RMA);
	return open_ucp(x, error);
}

static void print_lanes(const struct xb_ucx_lanes *lanes, char *out, size_t bytes)
{
	size_t used = 0;

	snprintf(out, bytes, "unknown");
	for (size_t i = 0; i < lanes->count && used < bytes; i++)
		used += (size_t)snprintf(out + used, bytes - used, "%s%s/%s", used ? " " : "",
					 lanes->items[i].tl, lanes->items[i].device);
}

/* The device whose counters should show the payload: none where shared memory takes part of it. */
static void choose_device(const struct xb_ucx_connection *c, const struct xb_ucx_lanes *lanes, char *out,
			  size_t bytes)
{
	const struct xb_ucx_lane *network = NULL;

	out[0] = '\0';
	for (size_t i = 0; i < lanes->count; i++) {
		if (xb_ucx_is_local(lanes->items[i].tl))
			return;
		if (network == NULL)
			network = &lanes->items[i];
	}
	/* Between two processes of one network namespace the kernel takes lo, whatever the address. */
	if (network)
		snprintf(out, bytes, "%s",
			 c->same_netns && strcmp(network->tl, "tcp") == 0 ? "lo" : network->device);
}

static void add_note(struct xb_description *out, const char *text)
{
	size_t used = strlen(out->note);

	if (text[0])
		snprintf(out->note + used, sizeof(out->note) - used, "%s%s", used ? "; " : "", text);
}

static void write_notes(const struct xb_ucx_connection *c, const struct xb_ucx_lanes *lanes,
			struct xb_description *out)
{
	const struct xb_ucx_path *path = &c->context->path;
	int shared = 0, other_interface = 0;
	char warning[160];

	for (size_t i = 0; i < lanes->count; i++) {
		shared |= xb_ucx_is_shared_memory(lanes->items[i].tl);
		other_interface |=
			strcmp(lanes->items[i].tl, "tcp") == 0 && strcmp(lanes->items[i].device, "lo") != 0;
	}
	add_note(out, path->note);
	if (shared && c->same_host && !c->same_netns)
		add_note(out, "shared memory, although the two ends are in different network namespaces: "
			      "they share IPC");
	else if (shared && path->tl_count == 0)
		add_note(out, "UCX chose shared memory");
	if (other_interface && c->same_netns)
		add_note(out, "both ends in one network namespace: the kernel carries all interfaces' bytes "
			      "over lo");
	if (c->context->ucx_memory)
		add_note(out, "buffers allocated by UCX");
	xb_ucx_log_warning(warning, sizeof(warning));
	if (warning[0]) {
		add_note(out, "UCX warns");
		add_note(out, warning);
	}
}

/* A put through shared memory is a copy by the processor, which stores in any order. */
static int in_order(const struct xb_ucx_context *x, const struct xb_ucx_lanes *lanes)
{
	for (size_t i = 0; i < lanes->count; i++)
		if (xb_ucx_is_local(lanes->items[i].tl))
			return 0;
	for (size_t i = 0; x->watched && i < sizeof(ordered) / sizeof(*ordered); i++) {
		const char *value = getenv(ordered[i].name);
		if (value && value[0] != ordered[i].value[0])
			return 0;
	}
	return 1;
}

static int ucx_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error)
{
	const struct xb_ucx_context *x = context;
	const struct xb_ucx_connection *c = conn;
	struct xb_ucx_lanes lanes;
	int status = xb_ucx_lanes_read(c->ep, &lanes, error);

	if (status)
		return status;
	memset(out, 0, sizeof(*out));
	snprintf(out->library, sizeof(out->library), "UCX");
	snprintf(out->version, sizeof(out->version), "%s", ucp_get_version_string());
	print_lanes(&lanes, out->resolved, sizeof(out->resolved));
	choose_device(c, &lanes, out->device, sizeof(out->device));
	out->caps = XB_CAP_SEND | XB_CAP_SYNC_SEND | XB_CAP_READY_SEND | XB_CAP_BOTH_WAYS;
	if (x->features & UCP_FEATURE_RMA)
		out->caps |= XB_CAP_PUT | XB_CAP_GET | (in_order(x, &lanes) ? XB_CAP_PUT_WATCH : 0);
	out->eager_bytes = lanes.eager_bytes;
	out->path_ok = xb_ucx_lanes_check(&lanes, &x->path, out->note, sizeof(out->note));
	write_notes(c, &lanes, out);
	return 0;
}

static void ucx_close(void *context, int clean)
{
	struct xb_ucx_context *x = context;

	xb_ucx_disconnect_all(x, clean);
	if (x->worker)
		ucp_worker_destroy(x->worker);
	xb_ucx_memory_release(x);
	if (x->ucp)
		ucp_cleanup(x->ucp);
	if (x->log_started)
		xb_ucx_log_stop();
	x->worker = NULL;
	x->ucp = NULL;
	x->log_started = 0;
}

__attribute__((visibility("default"))) const struct xb_transport xb_transport = {
	.abi = XB_TRANSPORT_ABI,
	.name = "ucx",
	.summary =
		"UCX: UCP tag messages and one-sided operations over TCP, shared memory, InfiniBand and RoCE",
	.layer = XB_LAYER_MIDDLEWARE,
	.context_bytes = sizeof(struct xb_ucx_context),
	.connection_bytes = sizeof(struct xb_ucx_connection),
	.request_bytes = sizeof(struct xb_ucx_request),
	.region_bytes = sizeof(struct xb_ucx_region),
	.remote_bytes = sizeof(struct xb_ucx_remote),
	.keys = keys,
	.probe = xb_ucx_probe,
	.open = ucx_open,
	.memory = xb_ucx_memory,
	.address = xb_ucx_address,
	.connect = xb_ucx_connect,
	.export_region = xb_ucx_export,
	.import_region = xb_ucx_import,
	.prepare = xb_ucx_prepare,
	.describe = ucx_describe,
	.explain = xb_ucx_explain,
	.close = ucx_close,
};
