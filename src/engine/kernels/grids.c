/* The points of the IQ grids, packed.
 *
 * A point is a number whose digits, the first element lowest, choose from the
 * grid's few values: 8 digits in base 3, or 4 in base 8.  The points stand in
 * ascending order, so a text gives the distance from one to the next (the first:
 * from 0), a character each: ']' is 0, '^' 1 and so on to '}' 32; '~' adds 33 to
 * the distance that follows. */
#include "kernels/grids.h"

ebb_grids ebb_grid;

static const char text_iq1[] =
    "]_____`b_a_bc__eb_a_bb_a_a^c___^bca_a_a___^dc__eb_a_bb_a_bccba__a__``__a_h__ecccaa^lccc_^^e__e_aa^^_^^_______f`_"
    "___^^_kai_c___`^a_cc_ah_a_bb_a_bcaeb_a_bb_a_bc_ab^ce^`c_ai___cb_a_bb_a_bcc``b____bb_a_g^_ab^c_ca_a_^`i__b`c_____"
    "__a_aca^^^^^^__aee_c_m__ebb_a___a_ec__eca_b^_^`ab`^^___^^_a__ca_`^_^^__^`a_a__^^________^^b^^^^_^__^^___^^__^^_^"
    "^_^^__c_^^e^^__aa_^^___`^^^`_^_^^c``_eaiaec____a__^^___cc_gk__a_`d^^_a_^^_^^aae`^__aa_fdd_d______aa_cca`g_a_bb__"
    "__bcc``b_a_bb____bc_acd^ac____^^ebb_ccb__`b_a_bca_ccb__`b_a_be__ce^^_a___cec_a``iccc_a_a_^`a__g_`^______cb_bcccc"
    "b^cb_aeg_a_bb_a_bc_gb_a_g_a_e`_acg_a_c___cbb_b^b_a_g_a_bca_cb_a_bb_a_bcaeia______ma`aa^___a_^^__a_c____^^_^b____"
    "_a__b^^hc__ecg_aaafbgci`fc____^^b^____a____b^c`^_a__^^__aa__^^__^_^^^^`_^^_a^^_a_^^_^b___``b^____a____`^^_^_a__a"
    "`aa^c__ec`abdb_a_a___cc___cc`^`^`^_a__aaa_^^^^____^`c_a_^^a___mm__c__aakgc_^^_a_a__a_a_a_^^_c_e_c_`^a_c_^^__^^^^"
    "_a^^___^^__^^^^^^^^__^^_a_c_^^__aa_ac_a__e_a__^^_a_fb__`^af^c_^^^^``____^^_^^^_^^^^^_^^^^__c___^^_`_^a_^^^^__^^^"
    "^^_^__^^__^^^^^^^_^^^^^^^^^^_^^^^^__^`^^^_^^^^`_^^__^^^_^^`_^_^_^^^^^^^``^^^^^^^^^^^^^__^`a_^^^^_`a`_^^^b^^__a_a"
    "db____^^^^__^^db____ac`^_a__^^_cc_^^__^^^^^^^^__^^_````_^^^^ce`da^a^_c_^``^^^a____d`_^^__ie__ceca^^_____`jec___a"
    "_c^`_c```^_c^`ab`_ca_ia_h^ae^^`jcael^_^`_a________^^_^^__e^`__^^^^___ac___`^_k^^__^_^^_`_^^_d_^_`^_^`_^^bbcbb^^_"
    "a____^^^_^a_`__aa_^^_`_`l_ccg_a_cccbeb_cac____^`^^a_^^__aa`^bbc_^`ia^j_a_a__a^`dd`_ca_a_g_a_bb^___cb_a_bb_a_bc__"
    "_cc_a___^^^b__c`b__cb_a_bb_a_h_acb_a_bb_a_jai_d`a__akaica_ac__^`_a_^^_^b^^_________eka_cc_a^^a`^_a`bcdac_a_bb_a_"
    "_`c_ac`__a_bb_a_b^b__ec______a__gg_cb_a_bb_a_bc__j_a_bb_a_bca^^cca_c__e^bc___cc____a_______ab^_^^_a_e_c__a___cc_"
    "ace______e_ce_h`__aa_eae__^^^^_^^_e_c^^_ac_a__^^_^^_```^__^^__^^^^^^^^__^^_``_a^^^^_^^______ca`_b_c_^`^_^_c_b^a^"
    "`^^e__cg_ccaa__^`a^fca_ce_______^^__a______^^_a_^`__c__a_aeffe___a_aic_^^j_a_bb_a_bc___h_a_bb_a_b``___^l_``____g"
    "b_`_ja_^daa_bca_cb_a_bb_a_ncc_c`^___`^^^cy_____e_a_c_^^_ca__^^_a__mca`_`e_``_^^`_iaa^_`__a_a_g_a_h___h_a_bb_a_be"
    "a``ceaa_a_hbj_a_g_a_h__j_a_bb_a_";

static const char text_iq2_xxs[] =
    "]______c_a___cca_c_cie_cak{ii_o~`w_cg_c_aig_cic_aikq_gu_o{oca_cia_c_suu~tg~~a_cgeoicakcioeg~lg~nciaiq~f}~^k~~__c"
    "oywa~~_~j~h_csme_~ne~l_~~k_cok~dyq~~{ui~l~~~x~p_cca_cceag_cooyeaueueg{ci~`msg~x~~m_coa~n~fag~t}ocac_~`cuw~j~~a~~"
    "k_u~~e~b~fgc}~x~x~~icou{~d~t{~`a~~q_~j~~~~_~~~~~~m_cqyyii~|~~c_cako~`}~^sqo~b~~m~~s~~ecic~js~d~v~nqg~~s~~~~~l~h~"
    "~~~k~^s{~~e~~{~~~~~~~~]~l";

static const char text_iq2_xs[] =
    "]____________a_______a_c___a_a_g__________c___a_cca_co___a_cg_cakeq_______a_c___a__ag_co___a_cg_cgey_cka_yu_____"
    "_cac_ccioe__coycqoc~hag_______a_c___a_ce__co___a_cg_coi_k__aoo~`___a_cg_a_icy_co~ris~l_c_miqsa~j~~_~f_______cg_c"
    "oog_cocm}q~^ua_cm_~ryg}im~xac_gsqk~viui~ba_q_______a_c______cac_co___a_cg_coame_c_k_~r___a_a_g_coim_cic~hgesc~j_"
    "coaee~^gqcm}~~i___a_cca_coy_cak_~p{~n__cgeogoec~lc~d}seime~^yg_~~~hu_coieiq_~~~`k{mk~~goa~h~~s~p~n~|~^e~^___a_ce"
    "__co_s____aogc~bo~`_mca_c__komq{~jq~bycmsg_se~~{~^cega_cokmuqy~~eqqawcc~|~b_~h~~u~d~b~x}~`_a_ge~j~jc~^a_aqyo~`~d"
    "~~~~iqqg_a~lcc~r_~j_~bm";

static const char text_iq2_s[] =
    "]____________a_______a_______a_caa________a_c___a____a_a_c__c_c___a_ce_____akaaaee_______a_______________c____a_"
    "a_c_________a_a_______a_c___a_cg____aka_a_cg_co___a____aa________a_caek__c___aea_a_cgeog_ea_g~^i_______a__a___a_"
    "______a__aa_a_c____________a_______a_c___a_m_a_ac_cac_m_co___a____a_a_______a_c___a_cg_______a_c___a_cg_coa_a_cg"
    "_cow_____a_ae___a_cg_u___a_cg_cmsgcok~d___a____aa__c__eceak__c__ce__c_cg_coeia_acu_ma____a_a_c___a_cg_coa_a_cg_c"
    "kay_com~bac_m_cwo__c~vsiyi_q___________a___________c_ca_a_c___a______c_______a_c___a_cg_c___cca_a_cg_u__________"
    "__a_______a_c___a_cg_______a_c___a_ce__co___a_cg_cosc_a____a_c___a_cico___a_cg_cokk_co~r___a_______a_______a_c__"
    "_a_m_______a_c___a_cg_coa_a_cg_cm_y_______a_c___a_cg_co___a_cg_coy_cka~r___a_cg_cegy_co~rm~fqa__a___a_ca_a_cico_"
    "__a_cg_comkcok}ea_a_cg_coy_coemkm~~]m_c~dqiw~~o~he___a_a_ac_c___aeac_m_a____a_c___a_m_cm_aa__m_c~j_______ae___a_"
    "cg_co___a_cg_coeq_cm_~rac_m_c~be_us~ps_ioe_a____cc___a_cg_coac_m_ce~b_co~na___a_cg_cokk_co~fae}m~^_cka~p_~^a~~~d"
    "oaaaec__c~bcys~^cia_{a_ma_co~^kcm~~~`~pm~n~jqy_g_a~`q";

static const char text_iq3_xxs[] =
    "]__b_a^_dfv_a_b_da`_dhie__bd_d_agckac^_h~_pqbhi_acpm~otqa_rkm_b_d_b__h^u_dd_~k_b_dd~^c_kfjmha~_~daopi~~hk}_d_b_a"
    "`f|__`_ddxa^e_dc^_j^jqda~ha~]kuqgx~~`_htyd_d_rjbc_kfh_x_bjrmlo~ylpccix|or~drqhk_ia~~hql^mcn{|~ah~]kr~~h`_k~nttec"
    "mt|k}e~ezha~_et~~j~hk~nm_kz}{~a~`c~~a~]~a~m~dk~n__^om~hg~fxbsjkr~]m|_o~~_";

static const char text_iq3_s[] =
    "]^^`_^^^___^acb_`___b_d``^^^_a^a``a_adjabc^a_^```a`ac`___j`eca`_d_`ca_j_a`ha_`cc`clg_i_abca_lbh`_knld__i_abjaq^^"
    "_a^___^_d`_k_`fc^_`_abd`cd_kc_g`_^acc`g`gd``^`cc^abnch_b_j_da_ard`cd_l~ca`j_x_b_diance^___^___`_a^_d__`_j^`_`_c`"
    "a``a`cdu``g_bd_gag`a_`af_b_dckhcf`d`av`dbfj^hje_bgyaqaj_hbwd___`d__b_`_gce__db_jmga_gcg_ivdab_a^f_ackecbadncajd_"
    "hbggjpp}_j_h~_acca``ddmgb__dcbccaq_bbagbl`cib_b_da~__oh^vi_g~]vnqubhhcvcacka``icb__bdf}cfgbcjtb^ljbicc`igi~`ip_~"
    "s}_k~s__i_rmmdzsochbceibl~qklk`vqrx~e_~qa`f_i_icmdhl_y`ac`dnvu`ksacbu~fm}t~c";

/* The next point of the text; its digits as bytes of `values`. */
static uint64_t next_point(const char **text, unsigned *point, unsigned base, const uint8_t *values)
{
    uint64_t word = 0;

    for (; **text == '~'; (*text)++)
        *point += 33;
    *point += (unsigned)(*(*text)++ - ']');
    for (unsigned rest = *point, i = 0; rest; rest /= base, i++)
        word |= (uint64_t)(values[rest % base] ^ values[0]) << 8 * i;
    return word ^ values[0] * UINT64_C(0x0101010101010101);
}

static void fill_3(uint64_t *grid, const char *text, const uint8_t values[3])
{
    for (unsigned point = 0; *text; grid++)
        *grid = next_point(&text, &point, 3, values);
}

static void fill_8(uint32_t *grid, const char *text, const uint8_t values[8])
{
    for (unsigned point = 0; *text; grid++)
        *grid = (uint32_t)next_point(&text, &point, 8, values);
}

void ebb_grids_fill(void)
{
    static const uint8_t iq1[3] = { 0, 1, 2 }, iq2[3] = { 8, 25, 43 };
    static const uint8_t iq3_xxs[8] = { 4, 12, 20, 28, 36, 44, 52, 62 }, iq3_s[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };

    fill_3(ebb_grid.iq1, text_iq1, iq1);
    fill_3(ebb_grid.iq2_xxs, text_iq2_xxs, iq2);
    fill_3(ebb_grid.iq2_xs, text_iq2_xs, iq2);
    fill_3(ebb_grid.iq2_s, text_iq2_s, iq2);
    fill_8(ebb_grid.iq3_xxs, text_iq3_xxs, iq3_xxs);
    fill_8(ebb_grid.iq3_s, text_iq3_s, iq3_s);
}
