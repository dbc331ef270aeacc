# SPDX-License-Identifier: BSD-3-Clause
# `make help` lists the targets.
VERSION := 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
SANITIZE ?=
CC ?= gcc
MPICC ?= mpicc
PKG_CONFIG ?= pkg-config

BUILD ?= build$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))
comma := ,
PLUGIN_DIR := $(PREFIX)/lib/xportbench

CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
SANFLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)

# Libraries: flags from pkg-config, or the usual names where it is not installed or does not know them
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
pkg_libs = $(or $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null),$(2))
probe_header = $(shell printf '\#include <%s>\n' $(1) | $(CC) $(2) -E - >/dev/null 2>&1 && echo yes)
CORE_PKGS := jansson libsodium hwloc inih
CORE_CFLAGS := $(call pkg_cflags,$(CORE_PKGS))
CORE_LIBS := $(call pkg_libs,$(CORE_PKGS),-ljansson -lsodium -lhwloc -linih)
CORE_MISSING := $(strip $(foreach h,jansson.h sodium.h hwloc.h ini.h,$(if $(call probe_header,$(h),$(CORE_CFLAGS)),,$(h))))
XB_CFLAGS = -std=c11 -D_GNU_SOURCE -Icore -fPIC -fvisibility=hidden $(WARNINGS) $(CFLAGS) $(SANFLAGS) \
	-DXB_VERSION='"$(VERSION)"' -DXB_PLUGIN_DIR='"$(PLUGIN_DIR)"'
LDFLAGS_ALL = $(LDFLAGS) $(SANFLAGS)

CORE_SRC := $(wildcard core/*.c core/*/*.c)
CORE_OBJ := $(CORE_SRC:%.c=$(BUILD)/%.o)
LIB_OBJ := $(filter-out $(BUILD)/core/cli/main.o,$(CORE_OBJ))
# what every plugin carries of the core
PLUGIN_OBJ := $(BUILD)/core/error.o $(BUILD)/core/place.o $(BUILD)/core/engine/unsupported.o

# Backends: built where their headers are found. For each: whether, flags, libraries.
BACKENDS := null fault tcp
ofi_CFLAGS := $(call pkg_cflags,libfabric)
ofi_OK := $(call probe_header,rdma/fi_tagged.h,$(ofi_CFLAGS))
# libfabric is loaded at run time: what its dependencies read on loading has to be set first
ofi_LIBS := -ldl
ucx_CFLAGS := $(call pkg_cflags,ucx)
ucx_OK := $(call probe_header,ucp/api/ucp.h,$(ucx_CFLAGS))
ucx_LIBS := $(filter -L% -lucp -luct -lucs,$(call pkg_libs,ucx,-lucp -luct -lucs))
mpi_SHOW := $(shell $(MPICC) -show 2>/dev/null)
mpi_CFLAGS := $(patsubst -I%,-isystem %,$(filter -I% -D% -pthread,$(mpi_SHOW)))
mpi_OK := $(if $(mpi_SHOW),$(call probe_header,mpi.h,$(mpi_CFLAGS)))
mpi_LIBS := $(filter -L% -l% -Wl%,$(mpi_SHOW))
# Where several MPIs are installed side by side (mpicc.NAME): a plugin mpi@NAME for each, so that they can be compared
MPIS_FOUND := $(foreach m,openmpi mpich,$(if $(shell command -v mpicc.$(m) 2>/dev/null),$(m)))
MPIS ?= $(if $(word 2,$(MPIS_FOUND)),$(MPIS_FOUND))
define mpi_flags
mpi@$(1)_SHOW := $$(shell mpicc.$(1) -show 2>/dev/null)
mpi@$(1)_CFLAGS := $$(patsubst -I%,-isystem %,$$(filter -I% -D% -pthread,$$(mpi@$(1)_SHOW)))
mpi@$(1)_OK := $$(if $$(mpi@$(1)_SHOW),$$(call probe_header,mpi.h,$$(mpi@$(1)_CFLAGS)))
mpi@$(1)_LIBS := $$(filter -L% -l% -Wl%,$$(mpi@$(1)_SHOW))
endef
$(foreach m,$(MPIS),$(eval $(call mpi_flags,$(m))))
verbs_OK := $(and $(call probe_header,infiniband/verbs.h),$(call probe_header,rdma/rdma_cma.h))
verbs_LIBS := -lrdmacm -libverbs
fault_CFLAGS := $(CORE_CFLAGS)
fault_LIBS := -ljansson
tcp_LIBS :=
null_LIBS :=
BACKENDS += $(foreach b,ofi ucx mpi verbs $(if $(mpi_OK),$(MPIS:%=mpi@%)),$(if $($(b)_OK),$(b)))
LEFT_OUT := $(strip $(foreach b,ofi ucx mpi verbs,$(if $($(b)_OK),,$(b))))
PLUGINS := $(BACKENDS:%=$(BUILD)/plugins/libxb-%.so)

all: $(BUILD)/xportbench plugins xportbench ## what this machine has the headers for (default)
	@$(if $(LEFT_OUT),echo "left out (headers not found): $(LEFT_OUT)",:)

plugins: $(PLUGINS)

# the top-level name is a link to the ordinary build; the plugins are found beside the real file
xportbench: $(BUILD)/xportbench
	@$(if $(filter build,$(BUILD)),ln -sfn $(BUILD)/xportbench xportbench,:)

$(BUILD)/xportbench: $(CORE_OBJ)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CORE_LIBS) -ldl -lm -lpthread

$(BUILD)/core/%.o: core/%.c
	@mkdir -p $(@D)
	$(CC) $(XB_CFLAGS) $(CORE_CFLAGS) -MMD -MP -c -o $@ $<

# NAME, folder of its source
define backend_rules
$(BUILD)/transports/$(1)/%.o: transports/$(2)/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(XB_CFLAGS) $$($(1)_CFLAGS) -MMD -MP -c -o $$@ $$<
$(BUILD)/plugins/libxb-$(1).so: $(patsubst transports/$(2)/%.c,$(BUILD)/transports/$(1)/%.o,$(wildcard transports/$(2)/*.c)) $(PLUGIN_OBJ)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS_ALL) -shared -o $$@ $$^ $$($(1)_LIBS) -lm -lpthread
endef
$(foreach b,$(BACKENDS),$(eval $(call backend_rules,$(b),$(firstword $(subst @, ,$(b))))))

# unit tests: each tests/unit/test_*.c is a cmocka program linked with the core
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%)
$(BUILD)/tests/%: tests/unit/%.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(CC) $(XB_CFLAGS) $(CORE_CFLAGS) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(LIB_OBJ) $(CORE_LIBS) -lcmocka -ldl -lm -lpthread
unit: $(UNIT_BIN) ## the unit tests' programs

check: ## build and run every test
	tests/run

lint: all ## formatting, static analysis, agreement of the docs with the program
	@LINT_CFLAGS="$(subst ",\",$(XB_CFLAGS)) $(CORE_CFLAGS) $(ofi_CFLAGS) $(ucx_CFLAGS) $(mpi_CFLAGS)" \
		LEFT_OUT="$(LEFT_OUT)" XB_BIN=$(BUILD)/xportbench tests/lint

# What is installed, as SOURCE:TARGET below PREFIX; uninstall takes away the same targets.
MAN := $(BUILD)/xportbench.1
INSTALLED = $(BUILD)/xportbench:bin/xportbench $(MAN):share/man/man1/xportbench.1 \
	$(foreach f,$(PLUGINS),$(f):lib/xportbench/$(notdir $(f))) \
	$(foreach f,$(wildcard docs/schema/*.json),$(f):share/xportbench/$(notdir $(f))) \
	$(foreach f,$(wildcard share/profiles/*.ini),$(f):share/xportbench/profiles/$(notdir $(f))) \
	$(foreach f,$(wildcard share/references/*),$(f):share/xportbench/references/$(notdir $(f))) \
	$(foreach f,$(wildcard README.md LICENSE docs/*.md),$(f):share/doc/xportbench/$(notdir $(f)))

$(MAN): $(BUILD)/xportbench
	@$< man >$@.tmp && mv $@.tmp $@

install: all $(MAN) ## below PREFIX (/usr/local), staged under DESTDIR
	@set -e; for pair in $(INSTALLED); do target="$(DESTDIR)$(PREFIX)/$${pair#*:}"; \
		case $$target in */bin/*) mode=755 ;; *) mode=644 ;; esac; \
		echo "install $$target"; install -D -m $$mode "$${pair%%:*}" "$$target"; done

uninstall: ## remove what install put there, nothing else
	@rm -f $(foreach pair,$(INSTALLED),"$(DESTDIR)$(PREFIX)/$(lastword $(subst :, ,$(pair)))")
	@for folder in lib/xportbench share/xportbench/profiles share/xportbench/references share/xportbench share/doc/xportbench; do \
		rmdir "$(DESTDIR)$(PREFIX)/$$folder" 2>/dev/null || :; done

clean: ## remove what make built
	rm -rf build build-* xportbench

dist-clean: clean ## and what runs and tests left here
	rm -rf run.json tests/cache

help: ## this list
	@echo "make [SANITIZE=address,undefined] [CC=…] [PREFIX=…] [DESTDIR=…] [TARGET]"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1 \2/p' Makefile | while read -r target what; do \
		printf '  %-11s %s\n' "$$target" "$$what"; done

ifneq ($(filter-out clean dist-clean help,$(or $(MAKECMDGOALS),all)),)
ifneq ($(CORE_MISSING),)
$(error not found: $(CORE_MISSING). Install jansson, libsodium, hwloc and inih with their headers, or run ./quickstart)
endif
endif

.PHONY: all plugins unit check lint install uninstall clean dist-clean help
-include tests/*/rules.mk
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
